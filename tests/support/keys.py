"""Signing keys for tests, generated once because an RSA key takes a tenth of a second."""

import asyncio
from collections.abc import Sequence
from functools import lru_cache

from gatehouse.audit.model import AuditRecord
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.model import Algorithm, KeyAlgorithm, KeyLine, KeyPurpose, KeysChanged, SigningKey, StoredKeys
from gatehouse.keys.rotation import KEY_LINES, make_key
from gatehouse.keys.sealing import MasterKeys
from tests.support.clock import MovableClock

MASTER = bytes(range(7, 247, 8)) + b"\x00\x01"
OTHER_MASTER = bytes(reversed(MASTER))
NOW = 1_800_000_000  # the start time of MovableClock


class KeysInMemory:
    """A KeyStore in memory."""

    def __init__(self, keys: Sequence[SigningKey] = ()) -> None:
        self.stored = StoredKeys(version=1 if keys else 0, keys=tuple(keys))
        self.saves: list[tuple[str, str]] = []
        self.loads = 0
        self.versions_read = 0

    async def load_keys(self) -> StoredKeys:
        self.loads += 1
        stored = self.stored
        await asyncio.sleep(0)  # like a real store, yield to other tasks
        return stored

    async def keys_version(self) -> int:
        self.versions_read += 1
        await asyncio.sleep(0)
        return self.stored.version

    async def save_keys(self, keys: Sequence[SigningKey], *, seen: int, entry: AuditRecord) -> None:
        if seen != self.stored.version:
            raise KeysChanged
        keys_by_kid = {key.kid: key for key in self.stored.keys} | {key.kid: key for key in keys}
        self.stored = StoredKeys(version=seen + 1, keys=tuple(keys_by_kid.values()))
        self.saves.append((entry.event, entry.actor))

    def replace_keys(self, *keys: SigningKey) -> None:
        """Change records without the service noticing, as someone with access to the database could."""
        keys_by_kid = {key.kid: key for key in self.stored.keys} | {key.kid: key for key in keys}
        self.stored = StoredKeys(version=self.stored.version + 1, keys=tuple(keys_by_kid.values()))


@lru_cache
def master_keys() -> MasterKeys:
    return MasterKeys(MASTER)


@lru_cache
def first_keys() -> tuple[SigningKey, ...]:
    """One key of each line, created and signing long ago."""
    return tuple(make_key(line, master_keys(), now=NOW, signs_from=0, rsa_bits=2048) for line in KEY_LINES)


def a_key(
    purpose: KeyPurpose = KeyPurpose.TOKENS, alg: KeyAlgorithm = Algorithm.ES256, *, signs_from: int = 0
) -> SigningKey:
    return make_key(KeyLine(purpose, alg), master_keys(), now=NOW, signs_from=signs_from, rsa_bits=2048)


def key_of(purpose: KeyPurpose, alg: KeyAlgorithm) -> SigningKey:
    return next(key for key in first_keys() if key.line == KeyLine(purpose, alg))


async def a_keyring(store: KeysInMemory, clock: MovableClock) -> Keyring:
    keyring = Keyring(store=store, masters=master_keys(), clock=clock)
    await keyring.reload()
    return keyring
