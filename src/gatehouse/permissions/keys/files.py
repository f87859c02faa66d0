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
from gatehouse.keys.public_keys import MOST_CHARACTERS, parse_rsa_public_key

LOOKED_AT_EVERY: Final = 5.0  # seconds for which a directory is not read again
FILES_MOST: Final = 100
REMEMBERED_MOST: Final = 1_000  # applications
DIGITS: Final = 24
KEY_ID: Final = re.compile(rf"f([1-9][0-9]{{0,17}})-[0-9a-f]{{{DIGITS}}}", re.ASCII)

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
        self._read: LRUCache[int, tuple[float, tuple[PublishedKey, ...]]] = LRUCache(REMEMBERED_MOST)

    async def of(self, application_id: int) -> tuple[PublishedKey, ...]:
        if self._directory is None:
            return ()
        until, keys = self._read.get(application_id, (0.0, ()))
        if self._clock.monotonic() >= until:
            keys = await asyncio.to_thread(read_keys, self._directory, application_id)
            self._read[application_id] = (self._clock.monotonic() + LOOKED_AT_EVERY, keys)
        return keys


def application_of(key_id: str) -> int | None:
    """The application that such a key would be of; None for an id that no file ever gets."""
    found = KEY_ID.fullmatch(key_id)
    return None if found is None else int(found[1])


def read_keys(directory: Path, application_id: int) -> tuple[PublishedKey, ...]:
    files = sorted((directory / str(application_id)).glob("*.pem"))
    return tuple(key for file in files[:FILES_MOST] for key in read_key(file, application_id))


def read_key(file: Path, application_id: int) -> Iterator[PublishedKey]:
    """The key, unless it is none: then the log says so, and the others serve."""
    try:
        with file.open(encoding="ascii") as opened:
            public = parse_rsa_public_key(opened.read(MOST_CHARACTERS + 1))
    except (OSError, UnicodeDecodeError, BadPublicKey) as error:
        log.warning("key file ignored", file=str(file), reason=str(error))
        return
    # Not the file's name (R2). The application is part of it: one key in two directories is two keys.
    digest = sha256(f"{application_id}:".encode() + public_der(public)).hex()
    yield PublishedKey(f"f{application_id}-{digest[:DIGITS]}", public_pem(public))
