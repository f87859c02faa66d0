"""The WebSocket of a game session: `/ws/gameSession/refresh/<gsid>` (interface §6, R4)."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.requests import HTTPConnection
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send

from gatehouse.audit.model import Origin
from gatehouse.gamesessions.attendance import Ending, SessionFailed
from gatehouse.gamesessions.errors import Violation
from gatehouse.gamesessions.model import GSID, Stage
from gatehouse.gamesessions.presence import COME_BACK, Presence
from gatehouse.gamesessions.proof import Presented
from gatehouse.gamesessions.records import GameRecords
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import GatehouseError, Refused, TooMany
from gatehouse.web.dialects import Dialect
from gatehouse.web.errors import ErrorAnswers, problem_of
from gatehouse.web.game_proof import presented_in
from gatehouse.web.middleware.client_address import caller_of
from gatehouse.web.origin import origin_of
from gatehouse.web.routes.table import RateClass, VolumeLimiter
from gatehouse.web.sockets import SOCKET, Handover, Socket

ACTOR: Final = "game"
PREFIX: Final = "/ws/gameSession/refresh/"

CLOSINGS: Final[Mapping[Ending, tuple[int, str]]] = {
    Ending.UNKNOWN: (4404, "no such session"),
    Ending.OVER: (4410, "the session has ended"),
    Ending.FAULT: (1011, "server error"),
}
EVENTS: Final = {stage: msgspec.json.encode({"event": stage.value}) for stage in Stage}

log = logging.getLogger("gatehouse.gamesessions")


class ForeignOrigin(Refused):
    public = "This WebSocket was opened from another site."


class LastWord(msgspec.Struct, frozen=True, kw_only=True):
    status: str = "ERROR"
    error: str  # the record id
    gsid: str
    ts: int


class Sources:
    """How many sockets each source has open at this process (checklist WS-06)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def enter(self, source: str) -> None:
        if self._open[source] >= self._most:
            raise TooMany(COME_BACK, "sockets of one source")
        self._open[source] += 1

    def leave(self, source: str) -> None:
        self._open[source] -= 1
        if not self._open[source]:
            del self._open[source]


@dataclass(slots=True, kw_only=True, eq=False)
class Visit:
    """One socket, as presence and as the protocol see it."""

    gsid: str
    origin: Origin
    source: str
    presence: Presence
    sources: Sources
    clock: Clock
    joined: bool = False
    socket: Socket | None = None  # none before the handshake is finished

    def is_open(self) -> bool:
        return self.socket is not None

    def tell(self, stage: Stage) -> None:
        if self.socket is not None:
            self.socket.tell(EVENTS[stage])

    def end(self, ending: Ending, record_id: str) -> None:
        if self.socket is not None:
            word = LastWord(error=record_id, gsid=self.gsid, ts=self.clock.now())
            self.socket.end(*CLOSINGS[ending], last_word=msgspec.json.encode(word))

    def gone(self, *, by_client: bool) -> None:
        if self.joined:
            self.joined = False
            self.presence.leave(self.gsid, self, by_client=by_client)

    def released(self) -> None:
        self.sources.leave(self.source)


class GameSockets:
    def __init__(
        self,
        *,
        presence: Presence,
        records: GameRecords,
        errors: ErrorAnswers,
        limiter: VolumeLimiter,
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
        self._sources = Sources(sockets_per_source)

    def route(self) -> WebSocketRoute:
        return WebSocketRoute(f"{PREFIX}{{gsid:path}}", self, name="game.socket")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What is refused is refused before the handshake is finished, in HTTP; the rest is told on the socket.

        `receive` is left alone: nothing is read from the client before it has its answer.
        """
        scope["state"]["dialect"] = Dialect.GAME
        try:
            visit, presented = self._arrived(HTTPConnection(scope))
        except GatehouseError as error:
            refused = await self._recorded(error, HTTPConnection(scope))
            await self._errors.render(problem_of(refused), scope)(scope, receive, send)
            return
        try:
            ending = await self._joined(visit, presented)
        except TooMany as error:
            visit.released()
            await self._errors.render(problem_of(error), scope)(scope, receive, send)
            return
        await self._open(visit, scope, send)
        if ending is None:
            self._presence.look(visit.gsid)  # what it has missed, or what is over by now
        else:
            visit.end(*ending)

    async def _recorded(self, error: GatehouseError, connection: HTTPConnection) -> GatehouseError:
        """A page of somebody else's is told of by an id that can be looked up, as every violation is."""
        if not isinstance(error, ForeignOrigin):
            return error
        gsid = connection.scope["path"].removeprefix(PREFIX)
        return await self._records.violation(gsid, origin_of(connection, ACTOR), str(error))

    def _arrived(self, connection: HTTPConnection) -> tuple[Visit, Presented]:
        """Raises ForeignOrigin, BadInput, TooMany."""
        origins = connection.headers.getlist("origin")
        if origins and origins != [self._base_url]:
            raise ForeignOrigin(f"Origin {origins!r}")
        caller = caller_of(connection.scope)
        wait = self._limiter.admit(RateClass.POLL, caller.source)
        if wait:
            raise TooMany(wait, "sockets opened by one source")
        gsid = connection.scope["path"].removeprefix(PREFIX)
        presented = presented_in(connection, gsid.encode())  # there is no body to sign (R4)
        self._sources.enter(caller.source)
        visit = Visit(
            gsid=gsid,
            origin=origin_of(connection, ACTOR),
            source=caller.source,
            presence=self._presence,
            sources=self._sources,
            clock=self._clock,
        )
        return visit, presented

    async def _joined(self, visit: Visit, presented: Presented) -> tuple[Ending, str] | None:
        """Why not, and the record of it; None when it takes part. Raises TooMany."""
        try:
            if GSID.fullmatch(visit.gsid) is None:
                raise await self._records.unknown(visit.gsid, visit.origin, visit.source)
            await self._presence.join(visit.gsid, presented, visit.origin, visit)
        except SessionFailed as failed:
            return Ending.OVER, failed.record_id
        except Violation as violation:
            return Ending.UNKNOWN, violation.record_id
        except TooMany:
            raise
        except GatehouseError as error:
            log.warning("a game WebSocket failed: %s", error)
            return Ending.FAULT, visit.origin.request_id
        visit.joined = True
        return None

    async def _open(self, visit: Visit, scope: Scope, send: Send) -> None:
        handover: Handover = scope[SOCKET]
        try:
            await send({"type": "websocket.accept"})
        except BaseException:
            visit.gone(by_client=True)
            visit.released()
            raise
        visit.socket = handover.hand_over(visit)
