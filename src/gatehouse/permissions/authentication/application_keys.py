"""Public keys of applications: stored ones, and files `<application id>/*.pem` in `applications.keys_dir` (R6)."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog
from cachetools import LRUCache
from msgspec import Struct

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_key_id
from gatehouse.keys.key_objects import load_public, public_der, public_pem
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.model import BadPublicKey
from gatehouse.keys.rsa_public_keys import MAX_KEY_CHARACTERS, parse_rsa_public_key
from gatehouse.permissions.errors import KeyNotFound, Malformed
from gatehouse.permissions.model.application import ApplicationKey, KeySource
from gatehouse.permissions.store import ApplicationKeyStore
from gatehouse.tokens import verifier
from gatehouse.tokens.request_signatures import cached_rsa_key

DIRECTORY_CACHE_SECONDS: Final = 5.0  # seconds for which a directory is not read again
MAX_KEY_FILES: Final = 100
DIRECTORY_CACHE_SIZE: Final = 1_000  # applications
DIGEST_DIGITS: Final = 24
FILE_KEY_ID: Final = re.compile(rf"f([1-9][0-9]{{0,17}})-[0-9a-f]{{{DIGEST_DIGITS}}}", re.ASCII)

log = structlog.get_logger(__name__)


class PublishedKey(Struct, frozen=True):
    key_id: str
    pem: str


class KeyFiles:
    """Owns the cache of key files by application; an entry is invalid after five seconds.

    `directory` is None if the setting is empty. It is used only for applications that exist; others would fill the
    cache.
    """

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
    """The application of a key file's id; None for an id of another form."""
    match = FILE_KEY_ID.fullmatch(key_id)
    return None if match is None else int(match[1])


def read_keys(directory: Path, application_id: int) -> tuple[PublishedKey, ...]:
    files = sorted((directory / str(application_id)).glob("*.pem"))
    return tuple(key for file in files[:MAX_KEY_FILES] for key in read_key(file, application_id))


def read_key(file: Path, application_id: int) -> Iterator[PublishedKey]:
    """The key of the file; an invalid file is logged and skipped."""
    try:
        with file.open(encoding="ascii") as opened:
            public = parse_rsa_public_key(opened.read(MAX_KEY_CHARACTERS + 1))
    except (OSError, UnicodeDecodeError, BadPublicKey) as error:
        log.warning("key file ignored", file=str(file), reason=str(error))
        return
    # The id is not the file's name (R2). It contains the application: one key in two directories is two keys.
    digest = sha256(f"{application_id}:".encode() + public_der(public)).hex()
    yield PublishedKey(f"f{application_id}-{digest[:DIGEST_DIGITS]}", public_pem(public))


# Stored keys: applications sign service JWTs with them, and others verify what they sign (R2, R6).


def parse_public_key(text: object, place: str) -> str:
    """The key as PEM, in one spelling; raises Malformed for private, broken, weak and huge ones (AP-07)."""
    if not isinstance(text, str):
        raise Malformed(f"{place}: must be a public key as text")
    try:
        return public_pem(parse_rsa_public_key(text))
    except BadPublicKey as error:
        raise Malformed(f"{place}: {error.detail}") from error


def new_application_key(
    text: object, *, application_id: int, source: KeySource, now: int, place: str
) -> ApplicationKey:
    return ApplicationKey(
        kid=new_key_id(),
        application_id=application_id,
        source=source,
        pem=parse_public_key(text, place),
        created_at=now,
    )


def new_service_key(
    text: object,
    *,
    application_id: int,
    now: int,
    before: ApplicationKey | None = None,
    place: str = "data.service_meta.public_key",
) -> ApplicationKey:
    """Return the key of service_meta.public_key; one that is saved again unchanged keeps its id."""
    key = new_application_key(
        text,
        application_id=application_id,
        source=KeySource.SERVICE_META,
        now=now,
        place=place,
    )
    return before if before is not None and before.pem == key.pem else key


class ApplicationKeyDirectory:
    """The published keys, which the verifier of service JWTs uses too."""

    def __init__(self, *, store: ApplicationKeyStore, files: KeyFiles, keyring: Keyring, clock: Clock) -> None:
        self._store = store
        self._files = files
        self._keyring = keyring
        self._clock = clock

    async def list_published(self, application_id: int) -> tuple[PublishedKey, ...]:
        """Return the keys in the order of interface §2.3.

        Raises KeyNotFound for unknown and removed applications alike.
        """
        if not await self._store.is_application_live(application_id):
            raise KeyNotFound(f"application {application_id} is unknown or was removed")
        stored_keys = sorted(await self._store.application_keys(application_id), key=publication_order)
        return (*await self._files.keys_of(application_id), *(PublishedKey(key.kid, key.pem) for key in stored_keys))

    async def get_published_key(self, key_id: str) -> PublishedKey:
        """Return the key with this `kid`, also one of this service. Raises KeyNotFound."""
        await self._keyring.refresh()
        key = self._find_own_key(key_id)
        if key is None:
            _, key = await self._find_published(key_id) or (0, None)
        if key is None:
            raise KeyNotFound(f"key {key_id} is unknown, or its application was removed")
        return key

    async def find_public_key(self, kid: str) -> verifier.ApplicationPublicKey | None:
        """Find a key for the verifier of service JWTs."""
        published_key = await self._find_published(kid)
        public = None if published_key is None else cached_rsa_key(published_key[1].pem)
        if published_key is None or public is None:
            return None
        return verifier.ApplicationPublicKey(application_id=published_key[0], public=public)

    async def _find_published(self, kid: str) -> tuple[int, PublishedKey] | None:
        application_id = application_id_of(kid)
        if application_id is not None:
            return await self._find_in_files(application_id, kid)
        key = await self._store.application_key(kid)
        return None if key is None else (key.application_id, PublishedKey(key.kid, key.pem))

    async def _find_in_files(self, application_id: int, kid: str) -> tuple[int, PublishedKey] | None:
        if not await self._store.is_application_live(application_id):
            return None
        keys = await self._files.keys_of(application_id)
        return next(((application_id, key) for key in keys if key.key_id == kid), None)

    def _find_own_key(self, kid: str) -> PublishedKey | None:
        published = self._keyring.published_keys(self._clock.now())
        return next(
            (PublishedKey(kid, public_pem(load_public(key.public))) for key in published if key.kid == kid), None
        )


def publication_order(key: ApplicationKey) -> tuple[bool, int, str]:
    return key.source is not KeySource.SERVICE_META, key.created_at, key.kid
