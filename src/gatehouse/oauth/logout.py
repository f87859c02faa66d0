"""Checks sign-out requests of clients (OpenID Connect RP-Initiated Logout), and calls clients after a sign-out."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec
import structlog

from gatehouse.accounts.model import UserSession
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.clients import check_client_id
from gatehouse.oauth.errors import BadLogout, ClientNotFound
from gatehouse.oauth.model import Client, LogoutCall
from gatehouse.oauth.redirects import LOGOUT_PARAMETERS, reserved_parameter_in, with_query
from gatehouse.oauth.store import ClientStore, LogoutStore
from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed, OutboundRequest
from gatehouse.outbound.worker import MAX_ERROR_LENGTH, Backoff, CallWorker
from gatehouse.tokens.claims import IdClaims, InvalidToken, LogoutClaims, LogoutEvent, OidcIdClaims
from gatehouse.tokens.signer import Signer
from gatehouse.tokens.verifier import TokenVerifier


class LogoutRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Logout request parameters; others are ignored."""

    id_token_hint: str = ""
    client_id: str = ""
    post_logout_redirect_uri: str = ""
    state: str = ""
    ui_locales: str = ""


class CheckedLogout(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was checked."""

    client: Client | None = None  # None for a request without a verified client
    redirect_url: str = ""  # where the browser goes afterwards: registered by that client, with its state
    hint: IdClaims | OidcIdClaims | None = None

    def matches_session(self, signed_in: UserSession) -> bool:
        """Whether the hint is about this person and this session."""
        hint = self.hint
        if hint is None or hint.sub != signed_in.user.user_id:
            return False
        return hint.sid is None or hint.sid == signed_in.session.session_id


class LogoutRequests:
    def __init__(self, *, clients: ClientStore, verifier: TokenVerifier) -> None:
        self._clients = clients
        self._verifier = verifier

    async def check(self, asked: LogoutRequest) -> CheckedLogout:
        """Check the request. Raises BadLogout for a hint or an address that is not the client's."""
        hint = await self._hint(asked) if asked.id_token_hint else None
        if hint is not None and asked.client_id not in ("", hint.client_id):
            raise BadLogout("client_id does not match the id_token_hint", asked.client_id)
        client = await self._client(asked.client_id if hint is None else hint.client_id)
        return CheckedLogout(client=client, redirect_url=self._redirect_url(asked, client), hint=hint)

    async def _hint(self, asked: LogoutRequest) -> IdClaims | OidcIdClaims:
        try:
            return await self._verifier.verify_id_token_hint(asked.id_token_hint)
        except InvalidToken as error:
            raise BadLogout("the id_token_hint was not issued by this service", asked.client_id) from error

    async def _client(self, client_id: str) -> Client | None:
        try:
            return await self._clients.client(check_client_id(client_id)) if client_id else None
        except ClientNotFound:
            raise BadLogout("unknown client", client_id) from None

    def _redirect_url(self, asked: LogoutRequest, client: Client | None) -> str:
        """Return the redirect address; without a client none is registered, so it is ignored."""
        if not asked.post_logout_redirect_uri or client is None:
            return ""
        if asked.post_logout_redirect_uri not in client.post_logout_uris:
            raise BadLogout("the post_logout_redirect_uri is not registered for this client", client.client_id)
        if reserved_parameter_in(asked.post_logout_redirect_uri, LOGOUT_PARAMETERS):
            raise BadLogout(
                "the post_logout_redirect_uri contains the reserved query parameter state", client.client_id
            )
        given = {"state": asked.state} if asked.state else {}
        return with_query(asked.post_logout_redirect_uri, given) if given else asked.post_logout_redirect_uri


# Calls clients after a sign-out: stored, retried, failed after a day (Back-Channel Logout §2.5).


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
