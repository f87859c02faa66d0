"""The end of an account: the person is forgotten, the id stays spent, the audit log stays whole (OP-14)."""

from dataclasses import replace

from gatehouse.accounts.model import User
from gatehouse.accounts.own.store import ErasureStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock


class Erasure:
    def __init__(self, *, store: ErasureStore, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock

    async def erase(self, user: User, origin: AuditOrigin, *, even_last_administrator: bool = False) -> None:
        """Erase at once, and with it every session, token and link. Raises UserNotFound, LastAdministrator."""
        # Without the address: the record of the erasure is the one that nothing erases any more.
        entry = self._recorder.record(AuditEvent.USER_ERASED, replace(origin, address=""), subject=user.user_id)
        await self._store.erase_user(
            user.user_id, entry, even_last_administrator=even_last_administrator, now=self._clock.now()
        )
