"""Personal data in applications, for the account page and the administration: request, status, collect (R6)."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct

from gatehouse.accounts.own_account.model import ApplicationData
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.personal_data.model import (
    CallState,
    DataCall,
    DataJobKind,
    DataRequest,
    PersonalDataStore,
    StoredAnswer,
    answer_sealing_purpose,
)

WORST_FIRST: Final = (CallState.WAITING, CallState.FAILED, CallState.DONE)


class ExportStatus(Struct, frozen=True, kw_only=True):
    applications: tuple[tuple[str, CallState], ...]  # by name
    may_request: bool


class DataRequests:
    def __init__(self, *, store: PersonalDataStore, sealer: SecretSealer, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._sealer = sealer
        self._recorder = recorder
        self._clock = clock

    async def request_export(self, user_id: str, origin: AuditOrigin) -> str:
        """Request an export from every application; return the request's ID, "" when none supports it."""
        entry = self._recorder.record(AuditEvent.DATA_ASKED, origin, subject=user_id)
        return await self._store.request_export(user_id, entry, self._clock.now())

    async def find_requests(self, name: str) -> Sequence[DataRequest]:
        """Return requests by their ID or by user ID, also of erased users; the newest first."""
        return await self._store.find_requests(name)

    async def export_status(self, user_id: str) -> ExportStatus:
        """Return the state of the last export per application, and whether another one can be requested."""
        now = self._clock.now()
        asked = [
            request
            for request in await self._store.find_requests(user_id)
            if request.kind is DataJobKind.EXPORT and request.ends_at > now
        ]
        last = asked[0] if asked else None
        return ExportStatus(
            applications=() if last is None else tuple(application_states(last.calls)),
            may_request=(last is None or not last.is_open) and await self._store.has_export_sources(),
        )

    async def collect(self, user_id: str) -> Sequence[ApplicationData]:
        """Return the answers and delete them here; one that cannot be opened stays."""
        opened = []
        for stored_answer in await self._store.uncollected_answers(user_id, self._clock.now()):
            answer = self._open(stored_answer)
            if answer is not None:
                opened.append(answer)
                await self._store.delete_answer(stored_answer)
        return opened

    def _open(self, answer: StoredAnswer) -> ApplicationData | None:
        document = self._sealer.try_open(
            answer.sealed, purpose=answer_sealing_purpose(answer.request_id, answer.position)
        )
        if document is None:  # it stays: a previous master key may still be configured
            return None
        return ApplicationData(
            application_id=answer.application_id,
            application=answer.application,
            answered_at=answer.done_at,
            document=document,
        )


def application_states(calls: Sequence[DataCall]) -> Iterator[tuple[str, CallState]]:
    """Yield one state per application: waiting while one of its addresses waits, done when all are done."""
    for application, of_it in groupby(calls, key=lambda call: call.application):
        states = {call.state for call in of_it}
        yield application, next(state for state in WORST_FIRST if state in states)
