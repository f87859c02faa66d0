"""Argon2id in a bounded pool (S-02): memory in use is at most workers x memory, at any load.

Hashes of other systems have a pool of their own, so that expensive ones delay no other sign-in (R10).
"""

import asyncio
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from msgspec import Struct

from gatehouse.accounts.importing.hashes import is_imported, verify_imported
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.kernel.errors import Unavailable
from gatehouse.kernel.ids import new_secret
from gatehouse.kernel.text import nfc

T = TypeVar("T")

LOWEST_PRIORITY: Final = 19  # nice value of a thread on Linux
MAX_WAITING_IMPORTS: Final = 8  # checks of imported hashes running and queued; one can take a second
SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
MAX_WAITING: Final = 64  # hashes running and queued; at 0.1 s each the last one waits a few seconds


class PasswordCost(Struct, frozen=True, kw_only=True):
    memory_kib: int = 65_536
    time_cost: int = 3
    parallelism: int = 1
    workers: int = 2


def lower_thread_priority() -> None:
    """Lower the priority of hash threads, so that many logins slow down only logins (P15)."""
    with suppress(OSError):  # where that is forbidden, hash threads keep their priority
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)


class Passwords:
    """Hashes and verifies passwords, without knowing accounts."""

    def __init__(self, cost: PasswordCost, *, pepper: bytes = b"") -> None:
        self._cost = cost
        self._pepper = pepper
        self._decoy_hash: str | None = None
        self._waiting = 0
        self._waiting_imports = 0
        self._pool = ThreadPoolExecutor(cost.workers, thread_name_prefix="argon2", initializer=lower_thread_priority)
        # One per core at most: checks of imported hashes are bounded in memory and time, but not cheap.
        self._import_pool = ThreadPoolExecutor(
            min(cost.workers, os.cpu_count() or 1),
            thread_name_prefix="imported-hash",
            initializer=lower_thread_priority,
        )

    async def hash(self, password: str) -> str:
        return await self._run(partial(self._hash, self._bytes_to_hash(password)))

    async def matches(self, password: str, password_hash: str) -> bool:
        if is_imported(password_hash):
            return await self._matches_imported(password, password_hash)
        return await self._run(partial(verify, self._bytes_to_hash(password), password_hash))

    async def _matches_imported(self, password: str, password_hash: str) -> bool:
        """Check the hash; a failure costs an Argon2id as well, like a success, which is followed by a new hash.

        Otherwise a cheap hash would tell that the account exists (LG-05).
        """
        if await self._run_import_check(partial(verify_imported, password_hash, password)):
            return True
        await self.matches(password, await self.decoy_hash())
        return False

    async def decoy_hash(self) -> str:
        """Return a hash at the current cost that no password matches, for accounts that do not exist."""
        if self._decoy_hash is None:
            self._decoy_hash = await self.hash(new_secret())
        return self._decoy_hash

    def is_outdated(self, password_hash: str) -> bool:
        """Return whether the hash was imported or made at another cost, to be replaced at the next login."""
        cost = self._cost
        return not password_hash.startswith(
            f"$argon2id$v=19$m={cost.memory_kib},t={cost.time_cost},p={cost.parallelism}$"
        )

    def refuse_when_full(self) -> None:
        if self._waiting >= MAX_WAITING:
            raise Unavailable("too many password checks are running")

    def close(self) -> None:
        self._pool.shutdown()
        self._import_pool.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        """Run the work in the pool; raise Unavailable when the queue is full (faults R-19)."""
        self.refuse_when_full()
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1

    async def _run_import_check(self, work: Callable[[], T]) -> T:
        """The same with a queue of its own, so that expensive imported hashes delay no other sign-in."""
        if self._waiting_imports >= MAX_WAITING_IMPORTS:
            raise Unavailable("too many checks of imported passwords are running")
        self._waiting_imports += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._import_pool, work)
        finally:
            self._waiting_imports -= 1

    def _hash(self, prepared: bytes) -> str:
        argon2 = Argon2id(
            salt=secrets.token_bytes(SALT_BYTES),
            length=HASH_BYTES,
            iterations=self._cost.time_cost,
            lanes=self._cost.parallelism,
            memory_cost=self._cost.memory_kib,
        )
        return argon2.derive_phc_encoded(prepared)

    def _bytes_to_hash(self, password: str) -> bytes:
        """Return the bytes to hash, in NFC, so that a password typed on two systems matches (LG-18)."""
        text = nfc(password).encode()
        return hmac_sha256(self._pepper, text) if self._pepper else text


def verify(prepared: bytes, password_hash: str) -> bool:
    try:
        Argon2id.verify_phc_encoded(prepared, password_hash)
    except (InvalidKey, ValueError):  # another password, a malformed hash, parameters that Argon2 does not allow
        return False
    return True
