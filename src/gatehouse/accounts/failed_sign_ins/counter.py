"""Counts failed sign-ins in memory and writes them every few seconds.

The response is on its way before anything is stored, and an unknown account costs the same work as a known one, so
that no time tells whether the account exists (LG-05). A killed process loses the counts of its last seconds.
"""

from collections import Counter
from typing import Final

from gatehouse.accounts.failed_sign_ins.model import UNKNOWN_ACCOUNT, FailedSignInStore, FailureKey, FailureReason
from gatehouse.kernel.addresses import network_of
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.times import HOUR

MAX_PENDING: Final = 10_000  # different records between two flushes


class FailedSignIns:
    def __init__(self, *, store: FailedSignInStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pending: Counter[tuple[str, FailureKey]] = Counter()

    def count(self, user_id: str, reason: FailureReason, address: str) -> None:
        """Count a failure; `address` is an address or network."""
        now = self._clock.now()
        key = (user_id, FailureKey(now - now % HOUR, reason, network_of(address)))
        if key in self._pending or len(self._pending) < MAX_PENDING:
            self._pending[key] += 1

    async def flush(self) -> None:
        """Write the counts since the last flush, an account at a time; a failed write is repeated the next time."""
        taken, self._pending = self._pending, Counter()
        by_account: dict[str, dict[FailureKey, int]] = {}
        for (user_id, key), times in taken.items():
            by_account.setdefault(user_id, {})[key] = times
        by_account.pop(UNKNOWN_ACCOUNT, None)
        try:
            for user_id in list(by_account):
                await self._store.add_failures(user_id, by_account[user_id])
                del by_account[user_id]
        except BaseException:
            for user_id, counts in by_account.items():
                self._pending.update({(user_id, key): times for key, times in counts.items()})
            raise
