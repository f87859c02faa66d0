"""Store refusals: only the newest, so that a flood of them does not fill the database."""

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditStore, Details
from gatehouse.audit.recorder import Recorder


class RefusalLog:
    def __init__(self, *, store: AuditStore, recorder: Recorder, max_refusals: int) -> None:
        self._store = store
        self._recorder = recorder
        self._max_refusals = max_refusals

    async def add(
        self,
        event: AuditEvent,
        origin: AuditOrigin,
        *,
        reason: str,
        subject: str,
        details: Details | None = None,
        record_id: str = "",
    ) -> str:
        """Store a refusal and return its id for `audit show`."""
        refusal = self._recorder.refusal(
            event.value, origin, reason=reason, subject=subject, details=details, record_id=record_id
        )
        await self._store.add_refusal(refusal, self._max_refusals)
        return refusal.record_id
