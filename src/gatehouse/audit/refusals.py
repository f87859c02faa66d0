"""Keeps what was not allowed: the newest of it, so that a flood of refusals fills nothing."""

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.store import AuditStore


class RefusalLog:
    def __init__(self, *, store: AuditStore, recorder: Recorder, kept: int) -> None:
        self._store = store
        self._recorder = recorder
        self._kept = kept

    async def keep(self, event: AuditEvent, origin: AuditOrigin, *, reason: str, subject: str) -> str:
        """Returns the id by which `audit show` finds it."""
        refusal = self._recorder.refusal(event.value, origin, reason=reason, subject=subject)
        await self._store.refuse(refusal, self._kept)
        return refusal.record_id
