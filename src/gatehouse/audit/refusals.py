"""Keeps what was not allowed: the newest of it, so that a flood of refusals fills nothing."""

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.store import AuditStore


class RefusalLog:
    def __init__(self, *, store: AuditStore, recorder: Recorder, max_refusals: int) -> None:
        self._store = store
        self._recorder = recorder
        self._max_refusals = max_refusals

    async def add(self, event: AuditEvent, origin: AuditOrigin, *, reason: str, subject: str) -> str:
        """Returns the id by which `audit show` finds it."""
        refusal = self._recorder.refusal(event.value, origin, reason=reason, subject=subject)
        await self._store.add_refusal(refusal, self._max_refusals)
        return refusal.record_id
