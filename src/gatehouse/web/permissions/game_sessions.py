"""POST /api/permissions/gameSession: a game session as the console shows it (interface §4.14)."""

from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.games import SeenGames
from gatehouse.admin.model.games import ref_of
from gatehouse.gamesessions.model import GameSession
from gatehouse.permissions.callers.credentials import ORDINARY
from gatehouse.permissions.documents.spelling import ApplicationId
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.parse import read_json
from gatehouse.web.permissions.app_schemas import id_of
from gatehouse.web.permissions.credentials import Asked
from gatehouse.web.permissions.envelope import answer, post
from gatehouse.web.permissions.front_desk import FrontDesk
from gatehouse.web.permissions.moments import moment
from gatehouse.web.routes.table import Endpoint


class GameSessionData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ref: str  # the beginning of its gsid


class GameSessionRequest(Asked, frozen=True, kw_only=True):
    action: Literal["get"]
    application_id: ApplicationId | None = None
    data: GameSessionData


class GameSessionEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Game session; future times are omitted, user and IP address are shown to administrators only."""

    ref: str
    state: str
    stage: str
    proof: Literal["key", "location"]
    code: bool
    polls: int
    created: str
    ends: str
    application_id: int = 0
    gapp_id: int = 0
    polled: str = ""
    last_seen: str = ""
    opened: str = ""
    signing_in: str = ""
    confirmed: str = ""
    delivered: str = ""
    closed: str = ""
    closed_as: str = ""
    user_id: str = ""
    address: str = ""


class GameSessionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    data: GameSessionEntry


class GameSessionEndpoint:
    def __init__(self, *, games: SeenGames, desk: FrontDesk) -> None:
        self._games = games
        self._desk = desk

    async def act(self, request: Request) -> Response:
        ask = await read_json(request, GameSessionRequest)
        visit = await self._desk.visit(request, ask, ORDINARY, application_id=id_of(ask.application_id))
        session = await self._games.get(visit, ask.data.ref)
        return answer(entry(session, whole=is_open(visit.rights, Operation.ADMINISTER)))

    def endpoint(self) -> Endpoint:
        return post(
            "gameSession",
            self.act,
            name="game_session",
            request=GameSessionRequest,
            section="interface §4.14",
            summary="State and times of a game session",
            answers=GameSessionAnswer,
        )


def entry(session: GameSession, *, whole: bool) -> GameSessionEntry:
    return GameSessionEntry(
        ref=ref_of(session.gsid),
        state=session.state.value,
        stage=session.stage.value,
        proof="key" if session.public_key else "location",
        code=session.code_shown,
        polls=session.polls,
        created=moment(session.created_at),
        ends=moment(session.ends_at),
        application_id=session.app_id,
        gapp_id=session.gapp_id,
        polled=moment(session.polled_at),
        last_seen=moment(session.last_seen),
        opened=moment(session.opened_at),
        signing_in=moment(session.signing_in_at),
        confirmed=moment(session.confirmed_at),
        delivered=moment(session.delivered_at),
        closed=moment(session.closed_at),
        closed_as=session.closed,
        user_id=session.user_id if whole else "",
        address=session.address if whole else "",
    )
