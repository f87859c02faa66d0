"""The game session endpoints: getGsid, getGsidResult, info, closeGsid (interface §4.3, R4)."""

from dataclasses import replace
from typing import Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from gatehouse.gamesessions.desk import GameDesk
from gatehouse.gamesessions.model import Closing, GameSession
from gatehouse.gamesessions.poll import CANCELLED, ERROR, OK, RETRY, ClientGone, PollAnswer, Polls
from gatehouse.gamesessions.ports import Line
from gatehouse.gamesessions.proof import Presented, Vouched
from gatehouse.gamesessions.records import GameRecords
from gatehouse.gamesessions.registration import Registration, Wish
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.key_proofs import KeyProofs
from gatehouse.tokens.errors import InvalidToken
from gatehouse.web.dialects import Dialect, Failure
from gatehouse.web.game_proof import AccessKeySignatures, Asked, alone, presented_by
from gatehouse.web.login import LoginMeta
from gatehouse.web.login_options import OFF, ON, LoginFields, Switch, check_switches, checked_public_key, options_of
from gatehouse.web.middleware.body_limit import DEFAULT_LIMIT
from gatehouse.web.middleware.client_address import caller_of
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.formats import qr_data_uri
from gatehouse.web.parse import ANY_BODY, raw_body, read_json_or_form
from gatehouse.web.permissions.credentials import Asked as SignedFields
from gatehouse.web.permissions.credentials import shown_in, signed_of
from gatehouse.web.protocol import LINE
from gatehouse.web.responses import json_answer
from gatehouse.web.routes.table import Endpoint, RateClass

ACTOR: Final = "game"  # nobody is known yet
RESULT_PATH: Final = "/proxy/api/gameSession/getGsidResult"
REGISTER_BODY: Final = 2 * 1024 * 1024  # bytes: what is too long in it is told by name (checklist GS-29)


class GetGsid(LoginFields, frozen=True, kw_only=True):
    public_key: str = ""
    ip: str = ""
    ts: int | str = 0
    qr: Switch = OFF
    code: Switch = OFF


class GsidAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    gsid: str
    ts: int
    started: int
    url: str
    qr: str = ""
    code: str = ""


class GetGsidResult(Asked, frozen=True, kw_only=True):
    gsid: str
    states: Switch = OFF


class GsidResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """OK with the login data, RETRY, CANCELLED, or ERROR with a record ID."""

    status: str
    gsid: str = ""
    ts: int = 0
    started: int = 0
    last_seen: int = 0
    delay: int = 0
    state: str = ""
    error: str = ""
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
    jwt: str = ""
    factor: str = ""
    login: str = ""
    stoken: str = ""
    meta: LoginMeta | None = None


class GsidRequest(msgspec.Struct, frozen=True, kw_only=True):
    gsid: str


class CloseGsid(Asked, frozen=True, kw_only=True):
    gsid: str
    status: Closing


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    distr: str
    factor: str
    app_id: int
    gapp_id: int
    ip: str
    created: int
    last_seen: int
    state: str


class InfoAnswer(msgspec.Struct, frozen=True, kw_only=True):
    session: SessionInfo
    status: str = OK


class Closed(msgspec.Struct, frozen=True, kw_only=True):
    status: str = OK


class KeySignatures:
    """`Signature` on a game session request: an application vouches for its client's address (interface §4.8)."""

    def __init__(self, keys: KeyProofs) -> None:
        self._keys = keys

    async def vouched(self, request: Request, ip: str, ts: int | str) -> Vouched | None:
        if "signature" not in request.headers:
            return None
        given = shown_in(request.scope["headers"])
        signed = signed_of(request, given, SignedFields(ip=ip, ts=ts), await raw_body(request))
        by = await self._keys.by_signature(signed, source=caller_of(request.scope).source)
        await self._keys.note_use(by.key)
        return Vouched(application_id=by.key.application_id, address=by.address)


class GameSessionEndpoints:
    def __init__(
        self,
        *,
        registration: Registration,
        polls: Polls,
        desk: GameDesk,
        keys: AccessKeySignatures,
        records: GameRecords,
        clock: Clock,
        base_url: str,
    ) -> None:
        self._registration = registration
        self._polls = polls
        self._desk = desk
        self._keys = keys
        self._records = records
        self._clock = clock
        self._base_url = base_url

    async def register(self, request: Request) -> Response:
        ask = await read_json_or_form(request, GetGsid)
        check_switches(ask, "qr", "code")
        by = await self._presented(request, Asked(public_key=ask.public_key, ip=ask.ip, ts=ask.ts))
        address, proven = by.address_for((ask.app_id, ask.gapp_id))
        wish = Wish(
            options=options_of(ask, str(address)),
            public_key=checked_public_key("public_key", by.public_key) or "",
            distr=ask.distr,
            wants_code=ask.code == ON,
            address=address,
            address_proven=proven,
        )
        given = await self._registration.register(wish, origin_of(request, ACTOR))
        url = f"{self._base_url}/?gsid={given.session.gsid}"
        answer = GsidAnswer(
            status=OK,
            gsid=given.session.gsid,
            ts=self._clock.now(),
            started=given.session.created_at,
            url=url,
            qr=qr_data_uri(url) if ask.qr == ON else "",
            code=given.session.code,
        )
        return json_answer(answer, headers={"Location": f"{RESULT_PATH}?location={given.location}"})

    async def poll(self, request: Request) -> Response:
        ask = await read_json_or_form(request, GetGsidResult)
        check_switches(ask, "states")
        presented = await self._presented(request, ask, ask.gsid)
        line: Line = request.scope[LINE]
        try:
            answer = await self._polls.poll(
                ask.gsid, presented, line, origin_of(request, ACTOR), states=ask.states == ON
            )
        except ClientGone as gone:
            raise ClientDisconnect from gone
        return json_answer(self._told(answer, with_state=ask.states == ON))

    def _told(self, answer: PollAnswer, *, with_state: bool) -> dict[str, object]:
        state = {"state": answer.session.stage.value} if with_state else {}
        match answer.status:
            case "ERROR":
                return {"status": ERROR, "error": answer.error, **state}
            case "RETRY":
                return {**self._envelope(RETRY, answer.session), "delay": answer.delay, **state}
            case "CANCELLED":
                return self._envelope(CANCELLED, answer.session)
        return {**answer.data, **self._envelope(OK, answer.session)}

    def _envelope(self, status: str, session: GameSession) -> dict[str, object]:
        return {
            "status": status,
            "gsid": session.gsid,
            "ts": self._clock.now(),
            "started": session.created_at,
            "last_seen": session.last_seen,
        }

    async def info(self, request: Request) -> Response:
        ask = await read_json_or_form(request, GsidRequest)
        found = await self._desk.info(ask.gsid, alone(request), origin_of(request, ACTOR))
        session = found.session
        told = SessionInfo(
            distr=session.distr,
            factor=found.factor,
            app_id=session.app_id,
            gapp_id=session.gapp_id,
            ip=session.address,
            created=session.created_at,
            last_seen=session.last_seen,
            state=session.closed,
        )
        return json_answer(InfoAnswer(session=told))

    async def close(self, request: Request) -> Response:
        ask = await read_json_or_form(request, CloseGsid)
        presented = await self._presented(request, ask, ask.gsid)
        await self._desk.close(ask.gsid, presented, ask.status, origin_of(request, ACTOR))
        return json_answer(Closed())

    async def _presented(self, request: Request, ask: Asked, gsid: str = "") -> Presented:
        try:
            return await presented_by(request, self._keys, ask)
        except InvalidToken as error:
            raise await self._records.violation(gsid, origin_of(request, ACTOR), f"Signature: {error}") from error

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
            request=GetGsid,
            accepts=ANY_BODY,
            answers={200: GsidAnswer, 401: Failure, 403: Failure},
            body_limit=REGISTER_BODY,
        )
        asked = replace(registered, body_limit=DEFAULT_LIMIT)
        return [
            registered,
            replace(
                asked,
                name="game.get_gsid_result",
                path=RESULT_PATH,
                handler=self.poll,
                summary="Wait up to 30 seconds for the sign-in; the result is returned once",
                request=GetGsidResult,
                answers={200: GsidResult, 403: Failure, 429: Failure},
            ),
            replace(
                asked,
                name="game.info",
                path="/proxy/api/gameSession/info",
                handler=self.info,
                summary="Game session data, only from allowed networks",
                request=GsidRequest,
                answers={200: InfoAnswer, 403: Failure},
            ),
            replace(
                asked,
                name="game.close_gsid",
                path="/proxy/api/gameSession/closeGsid",
                handler=self.close,
                summary="Report the result; the browser page is updated",
                request=CloseGsid,
                answers={200: Closed, 403: Failure},
            ),
        ]
