"""The WebSocket of a game session: `/ws/gameSession/refresh/<gsid>` (interface §6, R4)."""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import HTTPConnection
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send

from gatehouse.accounts.bans.model import UserBan, ban_fields
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.errors import Violation
from gatehouse.gamesessions.model import GSID_PATTERN, SignInStage
from gatehouse.gamesessions.presence import RETRY_AFTER, Presence
from gatehouse.gamesessions.proof import GameClientProof
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.sockets import SessionFailed, SocketCloseReason
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError, Refused, TooMany
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.api.game_proof import proof_from
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect, ErrorRenderer, problem_of
from gatehouse.web.http.routing import RateClass
from gatehouse.web.server.sockets import HANDSHAKE_KEY, AcceptedHandshake, OpenWebSocket

ACTOR: Final = "game"
SOCKET_PATH_PREFIX: Final = "/ws/gameSession/refresh/"

CLOSE_CODES: Final[Mapping[SocketCloseReason, tuple[int, str]]] = {
    SocketCloseReason.UNKNOWN: (4404, "no such session"),
    SocketCloseReason.OVER: (4410, "the session has ended"),
    SocketCloseReason.FAULT: (1011, "server error"),
}
STAGE_MESSAGES: Final = {stage: msgspec.json.encode({"event": stage.value}) for stage in SignInStage}

log = logging.getLogger("gatehouse.gamesessions")


class ForeignOrigin(Refused):
    public = "This WebSocket was opened from another site."


class FinalMessage(msgspec.Struct, frozen=True, kw_only=True):
    status: str = "ERROR"
    error: str  # the record id
    gsid: str
    ts: int
    reason: str | UnsetType = UNSET  # this and the next two: when a ban is the reason
    public_text: str | UnsetType = UNSET
    until: int | UnsetType = UNSET  # Unix seconds; 0 for no end


class SocketsPerSource:
    """How many sockets each source has open at this process (checklist WS-06)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: Counter[str] = Counter()

    def acquire(self, source: str) -> None:
        if self._open[source] >= self._limit:
            raise TooMany(RETRY_AFTER, "sockets of one source")
        self._open[source] += 1

    def release(self, source: str) -> None:
        self._open[source] -= 1
        if not self._open[source]:
            del self._open[source]


class GameSocket(msgspec.Struct, kw_only=True, eq=False):
    """One socket, as presence and as the protocol see it."""

    gsid: str
    origin: AuditOrigin
    source: str
    presence: Presence
    sources: SocketsPerSource
    clock: Clock
    joined: bool = False
    socket: OpenWebSocket | None = None  # None before the handshake is finished

    def is_open(self) -> bool:
        return self.socket is not None

    def send_stage(self, stage: SignInStage) -> None:
        if self.socket is not None:
            self.socket.send_text(STAGE_MESSAGES[stage])

    def close_with_reason(self, reason: SocketCloseReason, record_id: str, ban: UserBan | None = None) -> None:
        if self.socket is not None:
            about_ban: Mapping[str, Any] = ban_fields(ban)
            word = FinalMessage(error=record_id, gsid=self.gsid, ts=self.clock.now(), **about_ban)
            self.socket.close(*CLOSE_CODES[reason], final_text=msgspec.json.encode(word))

    def on_closed(self, *, by_client: bool) -> None:
        if self.joined:
            self.joined = False
            self.presence.leave(self.gsid, self, by_client=by_client)

    def on_released(self) -> None:
        self.sources.release(self.source)


class GameSocketEndpoint:
    def __init__(
        self,
        *,
        presence: Presence,
        records: GameRefusals,
        errors: ErrorRenderer,
        limiter: RateLimiter,
        clock: Clock,
        base_url: str,
        sockets_per_source: int,
    ) -> None:
        self._presence = presence
        self._records = records
        self._errors = errors
        self._limiter = limiter
        self._clock = clock
        self._base_url = base_url
        self._sources = SocketsPerSource(sockets_per_source)

    def route(self) -> WebSocketRoute:
        return WebSocketRoute(f"{SOCKET_PATH_PREFIX}{{gsid:path}}", self, name="game.socket")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open the socket of a session.

        Invalid requests get an HTTP status before the handshake ends, other results are sent on the socket. `receive`
        is not called: nothing is read from the client before it has its response.
        """
        scope["state"]["dialect"] = Dialect.GAME
        try:
            socket, presented = self._read_handshake(HTTPConnection(scope))
        except GatehouseError as error:
            refused = await self._record_violation(error, HTTPConnection(scope))
            await self._errors.render(problem_of(refused), scope)(scope, receive, send)
            return
        try:
            ending = await self._join(socket, presented)
        except TooMany as error:
            socket.on_released()
            await self._errors.render(problem_of(error), scope)(scope, receive, send)
            return
        await self._finish_handshake(socket, scope, send)
        if ending is None:
            self._presence.schedule_check(socket.gsid)  # events before the handshake, or the end of the session
        else:
            socket.close_with_reason(*ending)

    async def _record_violation(self, error: GatehouseError, connection: HTTPConnection) -> GatehouseError:
        """Record a request from a page of another site, with an id that can be looked up, like every violation."""
        if not isinstance(error, ForeignOrigin):
            return error
        gsid = connection.scope["path"].removeprefix(SOCKET_PATH_PREFIX)
        return await self._records.violation(gsid, origin_of(connection, ACTOR), str(error))

    def _read_handshake(self, connection: HTTPConnection) -> tuple[GameSocket, GameClientProof]:
        """Raises ForeignOrigin, BadInput, TooMany."""
        origins = connection.headers.getlist("origin")
        if origins and origins != [self._base_url]:
            raise ForeignOrigin(f"Origin {origins!r}")
        caller = caller_address_of(connection.scope)
        wait = self._limiter.admit(RateClass.POLL, caller.source)
        if wait:
            raise TooMany(wait, "sockets opened by one source")
        gsid = connection.scope["path"].removeprefix(SOCKET_PATH_PREFIX)
        presented = proof_from(connection, gsid.encode())  # a handshake has no body to sign (R4)
        self._sources.acquire(caller.source)
        socket = GameSocket(
            gsid=gsid,
            origin=origin_of(connection, ACTOR),
            source=caller.source,
            presence=self._presence,
            sources=self._sources,
            clock=self._clock,
        )
        return socket, presented

    async def _join(
        self, game_socket: GameSocket, presented: GameClientProof
    ) -> tuple[SocketCloseReason, str, UserBan | None] | None:
        """Add the socket to its session; return why it was refused and the record id, or None if it was added.

        Raises TooMany.
        """
        try:
            if GSID_PATTERN.fullmatch(game_socket.gsid) is None:
                raise await self._records.unknown_session(game_socket.gsid, game_socket.origin, game_socket.source)
            await self._presence.join(game_socket.gsid, presented, game_socket.origin, game_socket)
        except SessionFailed as failed:
            return SocketCloseReason.OVER, failed.record_id, failed.ban
        except Violation as violation:
            return SocketCloseReason.UNKNOWN, violation.record_id, None
        except TooMany:
            raise
        except GatehouseError as error:
            log.warning("a game WebSocket failed: %s", error)
            return SocketCloseReason.FAULT, game_socket.origin.request_id, None
        game_socket.joined = True
        return None

    async def _finish_handshake(self, game_socket: GameSocket, scope: Scope, send: Send) -> None:
        handover: AcceptedHandshake = scope[HANDSHAKE_KEY]
        try:
            await send({"type": "websocket.accept"})
        except BaseException:
            game_socket.on_closed(by_client=True)
            game_socket.on_released()
            raise
        game_socket.socket = handover.hand_over(game_socket)
