"""Argon2id in a bounded pool (defaults S-02): memory in use is workers x memory, whatever the load."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gatehouse.kernel.digests import hmac_sha256
from gatehouse.kernel.errors import Unavailable
from gatehouse.kernel.ids import new_secret
from gatehouse.kernel.text import nfc

T = TypeVar("T")

LOWEST_PRIORITY: Final = 19  # of a thread, to Linux
MAX_WAITING: Final = 64  # hashes under way and waiting; at 0.1 s each the last one waits some seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordCost:
    memory_kib: int = 65_536
    time_cost: int = 3
    parallelism: int = 1
    workers: int = 2


def lower_thread_priority() -> None:
    """Let the event loop have the processor first: a storm of logins slows nobody but those who log in (P15)."""
    with suppress(OSError):  # where that is forbidden, logins are merely as urgent as the rest
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)


class Passwords:
    """Hashes and checks; knows no account."""

    def __init__(self, cost: PasswordCost, *, pepper: bytes = b"") -> None:
        self._hasher = PasswordHasher(
            time_cost=cost.time_cost, memory_cost=cost.memory_kib, parallelism=cost.parallelism
        )
        self._pepper = pepper
        self._decoy_hash: str | None = None
        self._waiting = 0
        self._pool = ThreadPoolExecutor(cost.workers, thread_name_prefix="argon2", initializer=lower_thread_priority)

    async def hash(self, password: str) -> str:
        return await self._run(partial(self._hasher.hash, self._bytes_to_hash(password)))

    async def matches(self, password: str, password_hash: str) -> bool:
        return await self._run(partial(self._verify, self._bytes_to_hash(password), password_hash))

    async def decoy_hash(self) -> str:
        """A hash of today's cost that no password matches, for accounts that do not exist."""
        if self._decoy_hash is None:
            self._decoy_hash = await self.hash(new_secret())
        return self._decoy_hash

    def is_outdated(self, password_hash: str) -> bool:
        """True when the hash was made at another cost than today's: hash again at the next login."""
        return self._hasher.check_needs_rehash(password_hash)

    def refuse_when_full(self) -> None:
        if self._waiting >= MAX_WAITING:
            raise Unavailable("too many password checks are running")

    def close(self) -> None:
        self._pool.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        """Wait for a worker, but not behind a crowd: a storm of logins is shed, not queued (faults R-19)."""
        self.refuse_when_full()
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1

    def _verify(self, prepared: bytes, password_hash: str) -> bool:
        try:
            return self._hasher.verify(password_hash, prepared)
        except (VerificationError, InvalidHashError):
            return False

    def _bytes_to_hash(self, password: str) -> bytes:
        """The bytes that are hashed: NFC, so that a password typed on two systems stays one (LG-18)."""
        text = nfc(password).encode()
        return hmac_sha256(self._pepper, text) if self._pepper else text
