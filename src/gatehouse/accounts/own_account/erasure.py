"""Deletion of an account: personal data is erased, the ID is never reused, the audit log stays complete (OP-14)."""

from typing import Final

from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.times import DAY

LOST_DAYS: Final = 30  # after which an account is erased that lost its address (R10)
MAX_BATCHES: Final = 50  # in one sweep


class Erasure:
    def __init__(self, *, store: OwnAccountStore, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock

    async def erase(self, user: User, origin: AuditOrigin, *, even_last_administrator: bool = False) -> None:
        """Erase the account with every session, token and link. Raises UserNotFound, LastAdministrator."""
        # Without the address, because this record is never erased.
        entry = self._recorder.record(AuditEvent.USER_ERASED, replace(origin, address=""), subject=user.user_id)
        await self._store.erase_user(
            user.user_id, entry, even_last_administrator=even_last_administrator, now=self._clock.now()
        )

    async def erase_lost(self, origin: AuditOrigin) -> None:
        """Erase accounts that lost their address LOST_DAYS ago and cannot be entered (R10), a few at a time."""

        def record(user_id: str) -> AuditRecord:
            return self._recorder.record(
                AuditEvent.USER_ERASED, replace(origin, address=""), subject=user_id, details={"reason": "lost email"}
            )

        now = self._clock.now()
        for _ in range(MAX_BATCHES):
            if not await self._store.erase_lost_accounts(now - LOST_DAYS * DAY, record, now):
                return
