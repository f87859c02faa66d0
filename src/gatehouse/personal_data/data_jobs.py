"""The worker for export and removal calls: makes due calls, stores the outcome, retries later (R6).

Calls are held by lease, so that no address is called twice at once. A node that dies after an application responded
and before that was stored calls again: exports and removals are safe to repeat.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed, OutboundRequest, OutboundResponse
from gatehouse.outbound.targets import web_origin_of
from gatehouse.outbound.worker import MAX_ERROR_LENGTH, Backoff, CallWorker
from gatehouse.personal_data.model import (
    RETRY_SECONDS,
    ClaimedCall,
    DataJobKind,
    PersonalDataStore,
    answer_sealing_purpose,
)
from gatehouse.tokens.claims import OutboundServiceClaims
from gatehouse.tokens.signer import Signer

log = structlog.get_logger(__name__)

BATCH_SIZE: Final = 4  # concurrent calls
JWT_SECONDS: Final = 300  # lifetime of the JWT
BACKOFF: Final = Backoff(initial=60, maximum=6 * 3_600)
SERVICE_ORIGIN: Final = AuditOrigin(actor="service")
DONE_EVENTS: Final = {DataJobKind.EXPORT: AuditEvent.DATA_ANSWERED, DataJobKind.REMOVAL: AuditEvent.DATA_REMOVED}
NULL_DOCUMENT: Final = b"null"


class JobPayload(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an application is sent (R6): of an erased person only the ID is left."""

    user_id: str
    request_id: str


class NotDone(Exception):
    """The application responded, but not with success."""


class DataJobs:
    def __init__(
        self,
        *,
        store: PersonalDataStore,
        poster: OutboundClient,
        signer: Signer,
        sealer: SecretSealer,
        recorder: Recorder,
        clock: Clock,
        issuer: str,
    ) -> None:
        self._store = store
        self._poster = poster
        self._signer = signer
        self._sealer = sealer
        self._recorder = recorder
        self._clock = clock
        self._issuer = issuer
        self._rounds = CallWorker(claim=self._claim, run=self._run, poster=poster)

    async def run_once(self) -> None:
        """Make all due calls; return when none is left that can be made now."""
        await self._rounds.run_once()

    async def _claim(self, lease: int) -> Sequence[ClaimedCall]:
        return await self._store.claim_due_calls(self._clock.now(), lease, BATCH_SIZE)

    async def _run(self, call: ClaimedCall) -> None:
        try:
            answer = await self._poster.post(await self._request(call))
            sealed = self._seal_answer(call, answer)
        except CallFailed as failed:
            await self._retry_or_give_up(call, failed.detail or failed.public)
        except NotDone as trouble:
            await self._retry_or_give_up(call, str(trouble))
        else:
            entry = self._audit_record(DONE_EVENTS[call.kind], call)
            if not await self._store.complete_call(call, sealed, entry, self._clock.now()):
                await self._give_up(call, "the answers to this request are too large")

    async def _request(self, call: ClaimedCall) -> OutboundRequest:
        now = self._clock.now()
        claims = OutboundServiceClaims(
            iss=self._issuer, aud=web_origin_of(call.url), iat=now, exp=now + JWT_SECONDS, jti=call.request_id
        )
        return OutboundRequest(
            url=call.url,
            body=msgspec.json.encode(JobPayload(user_id=call.user_id, request_id=call.request_id)),
            headers={"Service-Jwt": await self._signer.sign(claims)},
        )

    def _seal_answer(self, call: ClaimedCall, answer: OutboundResponse) -> bytes | None:
        """Return the sealed answer to store, if there is one. Raises NotDone."""
        if not answer.is_success:
            raise NotDone(f"answered {answer.status}")
        if call.kind is DataJobKind.REMOVAL:
            return None
        document = answer.body.strip() or NULL_DOCUMENT
        try:
            msgspec.json.decode(document)
        except (msgspec.DecodeError, RecursionError):
            raise NotDone("the answer is not JSON") from None
        return self._sealer.seal(document, purpose=answer_sealing_purpose(call.request_id, call.position))

    async def _retry_or_give_up(self, call: ClaimedCall, trouble: str) -> None:
        next_try_at = self._clock.now() + BACKOFF.delay_after(call.tries)
        if next_try_at > call.created_at + RETRY_SECONDS[call.kind]:
            await self._give_up(call, trouble)
        else:
            await self._store.reschedule_call(call, trouble[:MAX_ERROR_LENGTH], next_try_at)

    async def _give_up(self, call: ClaimedCall, trouble: str) -> None:
        log.warning("personal data request to application failed", application_id=call.application_id, reason=trouble)
        entry = self._audit_record(AuditEvent.DATA_GIVEN_UP, call)
        await self._store.fail_call(call, trouble[:MAX_ERROR_LENGTH], entry, self._clock.now())

    def _audit_record(self, event: AuditEvent, call: ClaimedCall) -> AuditRecord:
        return self._recorder.record(
            event,
            SERVICE_ORIGIN,
            subject=call.user_id,
            details={"application_id": call.application_id, "request_id": call.request_id},
        )
