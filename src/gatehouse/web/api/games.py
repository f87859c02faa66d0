"""The game session endpoints: getGsid, getGsidResult, info, closeGsid (interface §4.3, R4)."""

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from gatehouse.accounts.bans.model import ban_fields
from gatehouse.accounts.guests.model import ChallengeIntent, DeviceProof, DeviceProofRefused
from gatehouse.accounts.guests.sign_in import GuestSignIn
from gatehouse.accounts.login_result import IdTokenRequest
from gatehouse.fields.derive import copy_as
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.gamesessions.model import CloseStatus, GameSession
from gatehouse.gamesessions.poll import CANCELLED, ERROR, OK, RETRY, ClientGone, PollAnswer, PollService
from gatehouse.gamesessions.proof import GameClientProof
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.registration import GameSessionRegistration, RegistrationRequest
from gatehouse.gamesessions.session_info import GameSessionService
from gatehouse.gamesessions.store import ClientConnection
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.tokens.claim_sizes import MAX_NONCE_BYTES, json_length
from gatehouse.tokens.claims import InvalidToken
from gatehouse.web.api.game_proof import AccessKeySignatureVerifier, ProofFields, address_only_proof, read_proof
from gatehouse.web.api.login import (
    OFF,
    ON,
    LoginFields,
    LoginMeta,
    Switch,
    check_public_key,
    check_switches,
    read_login_options,
)
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect, Failure
from gatehouse.web.http.parse import ANY_BODY, read_json_or_form
from gatehouse.web.http.responses import json_response
from gatehouse.web.http.routing import DEFAULT_BODY_LIMIT, Endpoint, RateClass
from gatehouse.web.pages.template_filters import qr_data_uri
from gatehouse.web.server.protocol import CONNECTION_KEY

ACTOR: Final = "game"  # the person is not known yet
RESULT_PATH: Final = "/proxy/api/gameSession/getGsidResult"
REGISTER_BODY_LIMIT: Final = 2 * 1024 * 1024  # bytes; an error names the field that is too long (checklist GS-29)


class GetGsidRequest(LoginFields, frozen=True, kw_only=True):
    public_key: str = ""
    ip: str = ""
    ts: int | str = 0
    qr: Switch = OFF
    code: Switch = OFF
    intent: str = ""  # `upgrade` with the next three: a guest gets an account (R10)
    device_key: str = ""
    challenge: str = ""
    signature: str = ""
    id_token_client: str = ""  # the client that the id_token is for
    nonce: str = ""  # of the id_token


class GetGsidResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    gsid: str
    ts: int
    started: int
    url: str
    qr: str = ""
    code: str = ""


class GsidResultRequest(ProofFields, frozen=True, kw_only=True):
    gsid: str
    states: Switch = OFF


class GsidResultResponse(SecretRecord, frozen=True, kw_only=True, omit_defaults=True):
    """OK with the login data, RETRY, CANCELLED, or ERROR with a record ID."""

    status: str
    gsid: str = ""
    ts: int = 0
    started: int = 0
    last_seen: int = 0
    delay: int = 0
    state: str = ""
    error: str = ""
    reason: str = ""  # this and the next two: of ERROR, when a ban is the reason
    public_text: str = ""
    until: int = 0  # Unix seconds; 0 for no end
    auth: str = ""
    country: str = ""
    lang: str = ""
    level: str = ""
    nick: str = ""
    reg_time: str = ""
    tags: str = ""
    token: str = ""
    token_exp: int = 0
    user_id: str = ""
    jwt: SecretText = ""
    factor: str = ""
    login: str = ""
    stoken: str = ""
    id_token: str = ""  # for the client that the game named at getGsid
    meta: LoginMeta | None = None


class GsidInfoRequest(msgspec.Struct, frozen=True, kw_only=True):
    gsid: str


class CloseGsidRequest(ProofFields, frozen=True, kw_only=True):
    gsid: str
    status: CloseStatus


class GameSessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    distr: str
    factor: str
    app_id: int
    gapp_id: int
    ip: str
    created: int
    last_seen: int
    state: str


class GameSessionInfoResponse(msgspec.Struct, frozen=True, kw_only=True):
    session: GameSessionInfo
    status: str = OK


class CloseGsidResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str = OK


def read_id_token_request(body: GetGsidRequest) -> IdTokenRequest | None:
    """Return the id_token that the game asks for; client and nonce go together (R10)."""
    if not body.id_token_client and not body.nonce:
        return None
    if not body.id_token_client or not body.nonce:
        raise BadInput("id_token_client and nonce: both or neither")
    if json_length(body.nonce) > MAX_NONCE_BYTES:  # the id_token contains it whole
        raise BadInput(f"nonce: at most {MAX_NONCE_BYTES} bytes")
    return IdTokenRequest(client_id=body.id_token_client, nonce=body.nonce)


class GameSessionEndpoints(Struct, kw_only=True, eq=False):
    registration: GameSessionRegistration
    polls: PollService
    game_sessions: GameSessionService
    guests: GuestSignIn
    keys: AccessKeySignatureVerifier
    records: GameRefusals
    clock: Clock
    base_url: str

    async def register(self, request: Request) -> Response:
        body = await read_json_or_form(request, GetGsidRequest)
        check_switches(body, "qr", "code")
        by = await self._read_proof(request, ProofFields(public_key=body.public_key, ip=body.ip, ts=body.ts))
        address, proven = by.address_for((body.app_id, body.gapp_id))
        wish = RegistrationRequest(
            options=msgspec.structs.replace(
                read_login_options(body, str(address)), id_token=read_id_token_request(body)
            ),
            public_key=check_public_key("public_key", by.public_key) or "",
            distr=body.distr,
            wants_code=body.code == ON,
            address=address,
            address_proven=proven,
            guest_id=await self._find_guest(request, body),
        )
        registration = await self.registration.register(wish, origin_of(request, ACTOR))
        url = f"{self.base_url}/?gsid={registration.session.gsid}"
        answer = GetGsidResponse(
            status=OK,
            gsid=registration.session.gsid,
            ts=self.clock.now(),
            started=registration.session.created_at,
            url=url,
            qr=qr_data_uri(url) if body.qr == ON else "",
            code=registration.session.code,
        )
        return json_response(answer, headers={"Location": f"{RESULT_PATH}?location={registration.location}"})

    async def _find_guest(self, request: Request, body: GetGsidRequest) -> str:
        """Return the guest who upgrades; empty for an ordinary sign-in."""
        if not body.intent:
            return ""
        if body.intent != ChallengeIntent.UPGRADE:
            raise BadInput("intent must be upgrade")
        if body.id_token_client:
            raise BadInput("id_token_client: not with intent upgrade; sign in again afterwards")
        proof = DeviceProof(device_key=body.device_key, challenge=body.challenge, signature=body.signature)
        try:
            return (await self.guests.find_to_upgrade(proof)).user_id
        except DeviceProofRefused as error:
            raise await self.records.violation("", origin_of(request, ACTOR), f"intent: {error}") from error

    async def poll(self, request: Request) -> Response:
        body = await read_json_or_form(request, GsidResultRequest)
        check_switches(body, "states")
        presented = await self._read_proof(request, body, body.gsid)
        line: ClientConnection = request.scope[CONNECTION_KEY]
        try:
            answer = await self.polls.poll(
                body.gsid, presented, line, origin_of(request, ACTOR), states=body.states == ON
            )
        except ClientGone as gone:
            raise ClientDisconnect from gone
        return json_response(self._poll_response(answer, with_state=body.states == ON))

    def _poll_response(self, answer: PollAnswer, *, with_state: bool) -> dict[str, object]:
        state = {"state": answer.session.stage.value} if with_state else {}
        match answer.status:
            case "ERROR":
                return {"status": ERROR, "error": answer.error, **ban_fields(answer.ban), **state}
            case "RETRY":
                return {**self._envelope(RETRY, answer.session), "delay": answer.delay, **state}
            case "CANCELLED":
                return self._envelope(CANCELLED, answer.session)
        return {**answer.data, **self._envelope(OK, answer.session)}

    def _envelope(self, status: str, session: GameSession) -> dict[str, object]:
        return {
            "status": status,
            "gsid": session.gsid,
            "ts": self.clock.now(),
            "started": session.created_at,
            "last_seen": session.last_seen,
        }

    async def info(self, request: Request) -> Response:
        body = await read_json_or_form(request, GsidInfoRequest)
        details = await self.game_sessions.info(body.gsid, address_only_proof(request), origin_of(request, ACTOR))
        session = details.session
        session_info = copy_as(
            GameSessionInfo,
            session,
            factor=details.factor,
            ip=session.address,
            created=session.created_at,
            state=session.closed,
        )
        return json_response(GameSessionInfoResponse(session=session_info))

    async def close(self, request: Request) -> Response:
        body = await read_json_or_form(request, CloseGsidRequest)
        presented = await self._read_proof(request, body, body.gsid)
        await self.game_sessions.close(body.gsid, presented, body.status, origin_of(request, ACTOR))
        return json_response(CloseGsidResponse())

    async def _read_proof(self, request: Request, body: ProofFields, gsid: str = "") -> GameClientProof:
        try:
            return await read_proof(request, self.keys, body)
        except InvalidToken as error:
            raise await self.records.violation(gsid, origin_of(request, ACTOR), f"Signature: {error}") from error

    def endpoints(self) -> list[Endpoint]:
        registered = Endpoint(
            name="game.get_gsid",
            path="/proxy/api/gameSession/getGsid",
            methods=("POST",),
            handler=self.register,
            dialect=Dialect.GAME,
            rate_class=RateClass.POLL,
            section="interface §4.3",
            summary="Register a game session; the person confirms it at the returned URL",
            request=GetGsidRequest,
            accepts=ANY_BODY,
            answers={200: GetGsidResponse, 401: Failure, 403: Failure},
            body_limit=REGISTER_BODY_LIMIT,
        )
        asked = replace(registered, body_limit=DEFAULT_BODY_LIMIT)
        return [
            registered,
            replace(
                asked,
                name="game.get_gsid_result",
                path=RESULT_PATH,
                handler=self.poll,
                summary="Wait up to 30 seconds for the sign-in; the result is returned once",
                request=GsidResultRequest,
                answers={200: GsidResultResponse, 403: Failure, 429: Failure},
            ),
            replace(
                asked,
                name="game.info",
                path="/proxy/api/gameSession/info",
                handler=self.info,
                summary="Game session data, only from allowed networks",
                request=GsidInfoRequest,
                answers={200: GameSessionInfoResponse, 403: Failure},
            ),
            replace(
                asked,
                name="game.close_gsid",
                path="/proxy/api/gameSession/closeGsid",
                handler=self.close,
                summary="Report the result; the browser page is updated",
                request=CloseGsidRequest,
                answers={200: CloseGsidResponse, 403: Failure},
            ),
        ]
