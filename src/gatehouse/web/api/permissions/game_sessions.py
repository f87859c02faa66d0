"""POST /api/permissions/gameSession: a game session as the console shows it (interface §4.14)."""

from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.games import session_ref
from gatehouse.admin.visible_game_sessions import VisibleGameSessions
from gatehouse.gamesessions.administration import GameSessionAdmin
from gatehouse.gamesessions.errors import SessionOver
from gatehouse.gamesessions.model import GameSession
from gatehouse.kernel.times import iso8601
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.documents.grammar import ApplicationId
from gatehouse.permissions.rights.guard import Operation, is_open, require_operation
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint
from gatehouse.web.api.permissions.schemas import parse_optional_application_id
from gatehouse.web.http.parse import read_action
from gatehouse.web.http.routing import Endpoint


class GameSessionData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ref: str  # the beginning of its gsid


class GameSessionCloseData(GameSessionData, frozen=True, kw_only=True):
    reason: str = ""


class GetGameSession(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="get"):
    application_id: ApplicationId | None = None
    data: GameSessionData


class CloseGameSession(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="close"):
    application_id: ApplicationId | None = None
    data: GameSessionCloseData


GameSessionRequest: TypeAlias = GetGameSession | CloseGameSession


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


class GameSessionResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    status: str
    data: GameSessionEntry | None = None  # none for close


class GameSessionEndpoint(Struct, kw_only=True, eq=False):
    games: VisibleGameSessions
    administration: GameSessionAdmin
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body: GameSessionRequest = await read_action(request, GameSessionRequest)
        authenticated = await self.authenticator.authenticate(
            credentials_of(request, body),
            DEFAULT_POLICY,
            application_id=parse_optional_application_id(body.application_id),
        )
        if isinstance(body, CloseGameSession):
            require_operation(authenticated.rights, Operation.ADMINISTER)
        session = await self.games.get(authenticated, body.data.ref)
        if isinstance(body, CloseGameSession):
            origin = actor_of(request, authenticated).origin
            if not await self.administration.close(session.gsid, body.data.reason.strip(), origin):
                raise SessionOver
            return ok_response()
        return data_response(game_session_entry(session, whole=is_open(authenticated.rights, Operation.ADMINISTER)))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "gameSession",
            self.handle,
            name="game_session",
            request=GameSessionRequest,
            section="interface §4.14",
            summary="State and times of a game session: get; end it: close",
            answers=GameSessionResponse,
        )


def game_session_entry(session: GameSession, *, whole: bool) -> GameSessionEntry:
    return GameSessionEntry(
        ref=session_ref(session.gsid),
        state=session.state.value,
        stage=session.stage.value,
        proof="key" if session.public_key else "location",
        code=session.code_shown,
        polls=session.polls,
        created=iso8601(session.created_at),
        ends=iso8601(session.ends_at),
        application_id=session.app_id,
        gapp_id=session.gapp_id,
        polled=iso8601(session.polled_at),
        last_seen=iso8601(session.last_seen),
        opened=iso8601(session.opened_at),
        signing_in=iso8601(session.signing_in_at),
        confirmed=iso8601(session.confirmed_at),
        delivered=iso8601(session.delivered_at),
        closed=iso8601(session.closed_at),
        closed_as=session.closed,
        user_id=session.user_id if whole else "",
        address=session.address if whole else "",
    )
