"""Calls clients after a sign-out: stored, retried, failed after a day (Back-Channel Logout §2.5)."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

import structlog

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.errors import ClientNotFound
from gatehouse.oauth.model import LogoutCall
from gatehouse.oauth.store import ClientStore, LogoutStore
from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed, OutboundRequest
from gatehouse.outbound.worker import MAX_ERROR_LENGTH, Backoff, CallWorker
from gatehouse.tokens.claims import LogoutClaims, LogoutEvent
from gatehouse.tokens.signer import Signer

log = structlog.get_logger(__name__)

BATCH: Final = 8  # calls at once
TOKEN_LIFETIME: Final = 120  # seconds; Back-Channel Logout §2.4 advises two minutes at most
BACKOFF: Final = Backoff(initial=15, maximum=3_600)
RETRY_PERIOD: Final = 86_400
NEVER: Final = 0  # the next try of a failed call, which is stored for the operator
FORM_HEADERS: Final = {"Content-Type": "application/x-www-form-urlencoded"}
SERVICE_ORIGIN: Final = AuditOrigin(actor="service")


class BackchannelLogoutWorker:
    def __init__(
        self,
        *,
        store: LogoutStore,
        clients: ClientStore,
        poster: OutboundClient,
        signer: Signer,
        recorder: Recorder,
        clock: Clock,
        issuer: str,
    ) -> None:
        self._store = store
        self._clients = clients
        self._poster = poster
        self._signer = signer
        self._recorder = recorder
        self._clock = clock
        self._issuer = issuer
        self._call_worker = CallWorker(claim=self._claim, run=self._deliver, poster=poster)

    async def run_once(self) -> None:
        """Make all calls that are due; return when none is left."""
        await self._call_worker.run_once()

    async def _claim(self, lease: int) -> Sequence[LogoutCall]:
        return await self._store.claim_calls(self._clock.now(), most=BATCH, lease=lease)

    async def _deliver(self, call: LogoutCall) -> None:
        try:
            answer = await self._poster.post(await self._build_request(call))
        except ClientNotFound:
            await self._store.schedule_retry(call, "the client was removed", NEVER)
        except CallFailed as failed:
            await self._retry_or_give_up(call, failed.detail or failed.public)
        else:
            if answer.is_success:
                await self._store.mark_delivered(call, self._entry(AuditEvent.LOGOUT_TOLD, call))
            else:
                await self._retry_or_give_up(call, f"answered {answer.status}")

    async def _build_request(self, call: LogoutCall) -> OutboundRequest:
        """Sign a new token for each try, so that a client that did receive the last one sees no replay."""
        client = await self._clients.client(call.client_id)
        now = self._clock.now()
        claims = LogoutClaims(
            iss=self._issuer,
            aud=call.client_id,
            iat=now,
            exp=now + TOKEN_LIFETIME,
            jti=f"{call.call_id}.{call.tries}",
            sub=call.user_id,
            sid=call.session_id,
            events=LogoutEvent(),
        )
        token = await self._signer.sign(claims, alg=client.token_settings.id_token_alg)
        return OutboundRequest(url=call.uri, body=urlencode({"logout_token": token}).encode(), headers=FORM_HEADERS)

    async def _retry_or_give_up(self, call: LogoutCall, trouble: str) -> None:
        next_try_at = self._clock.now() + BACKOFF.delay_after(call.tries)
        if next_try_at > call.created_at + RETRY_PERIOD:
            await self._give_up(call, trouble)
        else:
            await self._store.schedule_retry(call, trouble[:MAX_ERROR_LENGTH], next_try_at)

    async def _give_up(self, call: LogoutCall, trouble: str) -> None:
        log.warning("back-channel logout failed", client_id=call.client_id, reason=trouble)
        await self._store.give_up_call(
            call, trouble[:MAX_ERROR_LENGTH], self._entry(AuditEvent.LOGOUT_GIVEN_UP, call)
        )

    def _entry(self, event: AuditEvent, call: LogoutCall) -> AuditRecord:
        details: Details = {"user_id": call.user_id, "session": call.session_id, "tries": call.tries}
        return self._recorder.record(event, SERVICE_ORIGIN, subject=call.client_id, details=details)
