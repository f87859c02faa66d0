"""Public keys that the operator put into `applications.keys_dir/<application id>/*.pem` (R6)."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from cachetools import LRUCache

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.keys.errors import BadPublicKey
from gatehouse.keys.material import public_der, public_pem
from gatehouse.keys.public_keys import MAX_KEY_CHARACTERS, parse_rsa_public_key

DIRECTORY_CACHE_SECONDS: Final = 5.0  # seconds for which a directory is not read again
MAX_KEY_FILES: Final = 100
DIRECTORY_CACHE_SIZE: Final = 1_000  # applications
DIGEST_DIGITS: Final = 24
FILE_KEY_ID: Final = re.compile(rf"f([1-9][0-9]{{0,17}})-[0-9a-f]{{{DIGEST_DIGITS}}}", re.ASCII)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PublishedKey:
    key_id: str
    pem: str


class KeyFiles:
    """`directory` None: there is none. Ask only about applications that exist."""

    def __init__(self, directory: Path | None, *, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._cache: LRUCache[int, tuple[float, tuple[PublishedKey, ...]]] = LRUCache(DIRECTORY_CACHE_SIZE)

    async def keys_of(self, application_id: int) -> tuple[PublishedKey, ...]:
        if self._directory is None:
            return ()
        until, keys = self._cache.get(application_id, (0.0, ()))
        if self._clock.monotonic() >= until:
            keys = await asyncio.to_thread(read_keys, self._directory, application_id)
            self._cache[application_id] = (self._clock.monotonic() + DIRECTORY_CACHE_SECONDS, keys)
        return keys


def application_id_of(key_id: str) -> int | None:
    """The application that such a key would be of; None for an id that no file ever gets."""
    found = FILE_KEY_ID.fullmatch(key_id)
    return None if found is None else int(found[1])


def read_keys(directory: Path, application_id: int) -> tuple[PublishedKey, ...]:
    files = sorted((directory / str(application_id)).glob("*.pem"))
    return tuple(key for file in files[:MAX_KEY_FILES] for key in read_key(file, application_id))


def read_key(file: Path, application_id: int) -> Iterator[PublishedKey]:
    """The key, unless it is none: then the log says so, and the others serve."""
    try:
        with file.open(encoding="ascii") as opened:
            public = parse_rsa_public_key(opened.read(MAX_KEY_CHARACTERS + 1))
    except (OSError, UnicodeDecodeError, BadPublicKey) as error:
        log.warning("key file ignored", file=str(file), reason=str(error))
        return
    # Not the file's name (R2). The application is part of it: one key in two directories is two keys.
    digest = sha256(f"{application_id}:".encode() + public_der(public)).hex()
    yield PublishedKey(f"f{application_id}-{digest[:DIGEST_DIGITS]}", public_pem(public))
