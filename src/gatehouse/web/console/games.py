"""Game sessions: who waits, what happened in one of them, its end, and what stands behind an error id.

Whoever administers sees everything but secrets. Who may see an application sees its sessions, without the people and
addresses in them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.finding import FindingStore
from gatehouse.admin.model.games import REF, REF_LENGTH, GameLine, GameListStore, ref_of
from gatehouse.admin.model.names import NameStore
from gatehouse.admin.model.paging import Page
from gatehouse.admin.seen_log import shown
from gatehouse.audit.model import Record, Refusal
from gatehouse.audit.store import AuditStore
from gatehouse.gamesessions.administration import REASON_LONGEST, GameAdministration
from gatehouse.gamesessions.errors import SessionOver
from gatehouse.gamesessions.model import GSID, GameSession, State
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.rights.guard import Operation, is_open, require
from gatehouse.web.console.activity import SHOW_RECORD
from gatehouse.web.console.api_calls import record_call, session_call
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import ListQuery, csv_file
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.console.timeline import Timeline, timeline
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.parse import read_query
from gatehouse.web.responses import see_other

HERE: Final = Entry.GAMES
APPLICATIONS_MOST: Final = 50  # of somebody who does not administer
OPEN: Final = (State.PENDING, State.CONFIRMED)


class GamesQuery(ListQuery, frozen=True, kw_only=True):
    state: str = ""


class RecordQuery(ListQuery, frozen=True, kw_only=True):
    id: str = ""


class CloseForm(Guarded, frozen=True, kw_only=True):
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GamesContext(PageContext):
    template = "console/games/list.html"

    found: Page[GameLine]
    query: GamesQuery
    states: Sequence[str]
    administers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GameContext(PageContext):
    template = "console/games/session.html"

    ref: str
    session: GameSession
    application_id: int
    application: str
    nick: str
    line: Timeline
    refusals: Sequence[Refusal]
    administers: bool
    may_close: bool
    is_waited_for: bool
    call: ApiCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseGameContext(PageContext):
    template = "console/games/close.html"

    ref: str
    state: State
    application: str
    reason: str = ""
    longest: int = REASON_LONGEST
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordContext(PageContext):
    template = "console/games/record.html"

    asked: str
    refusal: Refusal | None = None
    subject: str = ""  # as much of it as may be shown
    ref: str = ""  # of the session, while it lasts
    command: str = ""  # that tells the same
    call: ApiCall | None = None  # and so does this


class GameScreens:
    def __init__(
        self,
        *,
        lists: GameListStore,
        audit: AuditStore,
        administration: GameAdministration,
        names: NameStore,
        finding: FindingStore,
        desk: ConsoleDesk,
        clock: Clock,
    ) -> None:
        self._lists = lists
        self._audit = audit
        self._administration = administration
        self._names = names
        self._finding = finding
        self._desk = desk
        self._clock = clock

    async def list(self, request: Request, guest: Guest) -> Response:
        query = read_query(request, GamesQuery)
        among = await self._seen(guest)
        state = query.state if query.state in set(State) else ""
        wanted = replace(query.wanted, search=named_by(query.wanted.search))
        found = await self._lists.sessions(wanted, self._clock.now(), state=state, among=among)
        if among is not None:
            found = replace(found, rows=[without_people(line) for line in found.rows])
        if query.is_file:
            return csv_file("game-sessions", COLUMNS, found.rows)
        context = GamesContext(found=found, query=query, states=tuple(State), administers=among is None)
        return self._desk.show(request, guest, HERE, context)

    async def show(self, request: Request, guest: Guest) -> Response:
        session = await self._session(request, guest)
        now, administers = self._clock.now(), guest.rights.administers
        refusals = await self._lists.refusals(session.gsid) if administers else ()
        number = session.app_id or session.gapp_id
        people = await self._names.people({session.user_id} - {""}) if administers else {}
        context = GameContext(
            ref=ref_of(session.gsid),
            session=session,
            application_id=number,
            application=(await self._finding.applications({number})).get(number, "") if number else "",
            nick=people[session.user_id].nick if session.user_id in people else "",
            line=timeline(session, refusals, now),
            refusals=refusals,
            administers=administers,
            may_close=administers and session.state in OPEN,
            is_waited_for=session.is_waited_for(now),
            call=session_call(session, number, administers=administers),
        )
        return self._desk.show(request, guest, HERE, context)

    async def ask_close(self, request: Request, guest: Guest) -> Response:
        return await self._closing(request, guest)

    async def close(self, request: Request, guest: Guest, form: CloseForm) -> Response:
        require(guest.rights, Operation.ADMINISTER)
        session = await self._session(request, guest)
        if not await self._administration.close(session.gsid, form.reason.strip(), guest.origin):
            raise SessionOver
        return self._desk.done(f"{HERE.path}/{ref_of(session.gsid)}", "game_closed")

    async def close_again(self, request: Request, guest: Guest, form: CloseForm, problem: Problem) -> Response:
        return await self._closing(request, guest, reason=form.reason, problem=problem)

    async def _closing(
        self, request: Request, guest: Guest, *, reason: str = "", problem: Problem | None = None
    ) -> Response:
        require(guest.rights, Operation.ADMINISTER)
        session = await self._session(request, guest)
        number = session.app_id or session.gapp_id
        names = await self._finding.applications({number})
        context = CloseGameContext(
            ref=ref_of(session.gsid),
            state=session.state,
            application=names.get(number, ""),
            reason=reason,
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def record(self, request: Request, guest: Guest) -> Response:
        """What stands behind the id that a refused game was told (interface §4.3)."""
        require(guest.rights, Operation.ADMINISTER)
        asked = read_query(request, RecordQuery).id.strip()
        found = await self._audit.find(asked) if asked else None
        if isinstance(found, Record):
            return see_other(f"{Entry.ACTIVITY.path}/{found.record_id}")
        if found is None:
            context = RecordContext(asked=asked)
            return self._desk.show(request, guest, HERE, context, status=404 if asked else None)
        is_gsid = GSID.fullmatch(found.subject) is not None
        lasting = await self._lists.session(ref_of(found.subject), self._clock.now()) if is_gsid else None
        context = RecordContext(
            asked=asked,
            refusal=found,
            subject=ref_of(found.subject) if is_gsid else found.subject,
            ref=ref_of(found.subject) if lasting is not None else "",
            command=f"{SHOW_RECORD} {found.record_id}",
            call=record_call(shown(found, guest.rights)),
        )
        return self._desk.show(request, guest, HERE, context)

    async def _session(self, request: Request, guest: Guest) -> GameSession:
        ref: str = request.path_params["ref"]
        among = await self._seen(guest)
        session = await self._lists.session(ref, self._clock.now()) if REF.fullmatch(ref) else None
        if session is None:
            raise NotFound("no such game session") if among is None else NoRight("no such game session")
        if among is not None and not {session.app_id, session.gapp_id} & set(among):
            raise NoRight("no such game session")
        return session

    async def _seen(self, guest: Guest) -> Collection[int] | None:
        """The applications whose sessions he may see; None for all. Nobody without any comes further."""
        if guest.rights.administers:
            return None
        found = []
        for number in sorted(guest.sight.applications)[:APPLICATIONS_MOST]:
            standing = (await self._desk.about(guest, number)).standing
            if is_open(standing.rights, Operation.APPLICATION_GET, standing.about):
                found.append(number)
        if not found:
            require(guest.rights, Operation.ADMINISTER)
        return found

    def screens(self) -> Sequence[Screen]:
        desk = self._desk
        return [
            desk.shown("/games", self.list),
            desk.shown("/games/record", self.record),
            desk.shown("/games/{ref}", self.show),
            desk.shown("/games/{ref}/close", self.ask_close, fresh=True),
            desk.posted("/games/{ref}/close", CloseForm, self.close, again=self.close_again, fresh=True),
        ]


COLUMNS: Final = {
    "session": lambda line: line.ref,
    "state": lambda line: line.state.value,
    "closed": lambda line: line.closed,
    "application_id": lambda line: line.application_id or None,
    "application": lambda line: line.application,
    "user_id": lambda line: line.user_id,
    "address": lambda line: line.address,
    "polls": lambda line: line.polls,
    "created_at": lambda line: line.created_at,
    "polled_at": lambda line: line.polled_at,
    "ends_at": lambda line: line.ends_at,
}


def named_by(search: str) -> str:
    """A whole gsid that somebody was told is found by its beginning."""
    return search.strip().lower()[:REF_LENGTH] if GSID.fullmatch(search.strip().lower()) else search


def without_people(line: GameLine) -> GameLine:
    return replace(line, user_id="", nick="", address="")
