"""The keys of one node: opened once, cached in memory by their version.

The version is read with the facts of every request, and `catch_up` reloads when it differs: a key that was distrusted
on one node is trusted on no other (docs/decisions/0029-keys-have-a-version.md).
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

import structlog
from msgspec.structs import replace

from gatehouse.fields.secrets import HIDDEN, SecretRecord
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Unavailable
from gatehouse.keys.key_objects import SECRET_KEY_BYTES, HmacKey, PrivateKey, PublicKey, load_private, public_der
from gatehouse.keys.model import (
    KeyAlgorithm,
    KeyPurpose,
    KeyState,
    KeyStore,
    MacAlgorithm,
    NoSigningKey,
    SigningKey,
    Tampered,
    WrongMasterKey,
    is_distrusted,
    key_state,
)
from gatehouse.keys.sealing import MasterKeys

KeyIdentity = tuple[str, bytes, bytes]  # what must be unchanged for an opened key to stay cached
NOTHING_PUBLISHED: Final[tuple[int, tuple[SigningKey, ...]]] = (-1, ())  # the second it is of, and the records

log = structlog.get_logger(__name__)


class OpenedKey(SecretRecord, frozen=True):
    record: SigningKey
    private: Annotated[PrivateKey | HmacKey, HIDDEN]
    public: PublicKey | None  # None of a secret key


KeysByPurpose = Mapping[KeyPurpose, Mapping[str, OpenedKey]]
KeysByLine = Mapping[tuple[KeyPurpose, KeyAlgorithm], Sequence[OpenedKey]]


class Keyring:
    """Call `reload` before first use; a notice of a change only loads the new keys early."""

    def __init__(self, *, store: KeyStore, masters: MasterKeys, clock: Clock) -> None:
        self._store = store
        self._masters = masters
        self._clock = clock
        self._published = NOTHING_PUBLISHED
        self._opened: KeysByPurpose = by_purpose(())
        self._lines: KeysByLine = {}
        self._refused: frozenset[KeyIdentity] = frozenset()
        self._reload_lock = asyncio.Lock()
        self._reads_begun = 0
        self._last_read = 0  # the number of the one this view was made by
        self.version = -1  # of the stored keys this view was made from
        self.distrust_count = 0  # how many keys were ever distrusted: ends the access tokens issued before

    def signing_key(self, purpose: KeyPurpose, alg: KeyAlgorithm, now: int) -> OpenedKey:
        """Return the key that signs now. Raises NoSigningKey. It is of another algorithm before its line has one."""
        for key in self._lines.get((purpose, alg), ()):
            if key_state(key.record, now) is KeyState.SIGNING:
                return key
        raise NoSigningKey(f"no usable {alg} key for {purpose}")

    async def verification_key(self, purpose: KeyPurpose, kid: str, now: int) -> OpenedKey | None:
        """Return the key of that purpose and name unless it is retired; keys of other purposes are not looked at.

        A key that is published but does not sign yet is accepted: this node's clock may be behind.
        """
        key = self._opened[purpose].get(kid)
        if key is None:
            await self.refresh()
            key = self._opened[purpose].get(kid)
        return key if key is not None and key_state(key.record, now) is not KeyState.RETIRED else None

    def published_keys(self, now: int) -> tuple[SigningKey, ...]:
        """The records of the public key set, oldest first; the same tuple object within one second."""
        if self._published[0] != now:
            records = (key.record for key in self._opened[KeyPurpose.TOKENS].values())
            published = (key for key in records if key_state(key, now) is not KeyState.RETIRED)
            self._published = (now, tuple(sorted(published, key=lambda key: (key.created_at, key.kid))))
        return self._published[1]

    async def ensure_version(self, version: int) -> None:
        """Reload if the store was seen at another version than this view (a lower one after a restore).

        Callers that come together share one reading, if it began after they saw their version and succeeded. Raises
        Unavailable when none of the keys opens: nothing is decided by an old view.
        """
        if version == self.version:
            return
        begun = self._reads_begun
        async with self._reload_lock:
            if version == self.version or self._last_read > begun:
                return
            try:
                await self._reload_keys()
            except WrongMasterKey as error:
                raise Unavailable(f"the signing keys changed and cannot be decrypted: {error.detail}") from error

    async def refresh(self) -> int:
        """Read the version that is stored now and catch up with it: for callers whose facts did not bring it."""
        version = await self._store.keys_version()
        await self.ensure_version(version)
        return version

    async def reload(self) -> None:
        """Load what is stored. Raises WrongMasterKey, and keeps the old view, when no key opens."""
        async with self._reload_lock:
            await self._reload_keys()

    async def _reload_keys(self) -> None:
        self._reads_begun = number = self._reads_begun + 1
        stored = await self._store.load_keys()
        self._masters.refuse_foreign_records(key.sealed_private for key in stored.keys)
        self._replace_keys(stored.keys)
        self.version, self._last_read = stored.version, number

    def _replace_keys(self, records: Sequence[SigningKey]) -> None:
        self.distrust_count = sum(
            is_distrusted(record) and record.purpose is not KeyPurpose.AUDIT for record in records
        )
        now = self._clock.now()
        live = [record for record in records if key_state(record, now) is not KeyState.RETIRED]
        opened = [key for record in live if (key := self._open_or_refuse(record)) is not None]
        kids = {key.record.kid for key in opened}
        self._refused = frozenset(key_identity(record) for record in live if record.kid not in kids)
        self._opened = by_purpose(opened)
        self._published = NOTHING_PUBLISHED
        self._lines = by_line(opened)

    def _open_or_refuse(self, record: SigningKey) -> OpenedKey | None:
        """Open a key, or log an alert once and go on without it: the others still work (faults R-25)."""
        known = self._opened[record.purpose].get(record.kid)
        if known is not None and key_identity(known.record) == key_identity(record):
            return replace(known, record=record)
        try:
            return open_key(record, self._masters)
        except (Tampered, WrongMasterKey) as error:
            if key_identity(record) not in self._refused:
                log.critical("signing key refused", key_id=record.kid, reason=error.detail)
            return None


def by_purpose(keys: Iterable[OpenedKey]) -> KeysByPurpose:
    purposes: dict[KeyPurpose, dict[str, OpenedKey]] = {purpose: {} for purpose in KeyPurpose}
    for key in keys:
        purposes[key.record.purpose][key.record.kid] = key
    return purposes


def by_line(keys: Iterable[OpenedKey]) -> KeysByLine:
    """The newest of each line first."""
    lines: dict[tuple[KeyPurpose, KeyAlgorithm], list[OpenedKey]] = {}
    for key in sorted(keys, key=lambda key: (key.record.signs_from, key.record.created_at), reverse=True):
        line = key.record.line
        lines.setdefault((line.purpose, line.alg), []).append(key)
    return lines


def key_identity(record: SigningKey) -> KeyIdentity:
    return record.kid, record.sealed_private, record.public


def open_key(record: SigningKey, masters: MasterKeys) -> OpenedKey:
    """Open the private half, and take the public one from it.

    The stored public half is only compared: write access to the database is enough to replace it.
    """
    plain = masters.open(record.sealed_private, purpose=record.sealed_for)
    if record.alg is MacAlgorithm.HS256:
        if record.public or len(plain) != SECRET_KEY_BYTES:
            raise Tampered(f"{record.sealed_for}: not a secret key of {SECRET_KEY_BYTES} bytes")
        return OpenedKey(record, HmacKey(plain), None)
    private = load_private(plain)
    public = private.public_key()
    if public_der(public) != record.public:
        raise Tampered(f"{record.sealed_for}: the public key does not match the private key")
    return OpenedKey(record, private, public)
