"""Game sessions: who waits, what happened in one of them, closing one, and the record behind an error ID.

Administrators see everything but secrets. Others see the sessions of applications they may see, without people and
addresses.
"""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.games import REF_LENGTH, REF_PATTERN, GameSessionListItem, GameSessionListStore, session_ref
from gatehouse.admin.names import NameStore
from gatehouse.admin.paging import Page
from gatehouse.admin.search import SearchStore
from gatehouse.admin.visible_audit_log import redact_record
from gatehouse.audit.model import AuditRecord, AuditStore, Refusal
from gatehouse.gamesessions.administration import MAX_REASON_LENGTH, GameSessionAdmin
from gatehouse.gamesessions.errors import SessionOver
from gatehouse.gamesessions.model import GSID_PATTERN, GameSession, GameSessionState
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.rights.guard import Operation, is_open, require_operation
from gatehouse.web.console.activity import SHOW_RECORD_COMMAND
from gatehouse.web.console.frame import ApiCall, record_call, session_call
from gatehouse.web.console.game_timeline import Timeline, build_timeline
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.refusals import RefusalDescriber, RefusalView
from gatehouse.web.console.view import AdminRequest, Confirmation, ConfirmationField, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

ENTRY: Final = ConsoleEntry.GAMES
MAX_APPLICATIONS: Final = 50  # of a person who is no administrator
OPEN_STATES: Final = (GameSessionState.PENDING, GameSessionState.CONFIRMED)


class GamesQuery(ListQuery, frozen=True, kw_only=True):
    state: str = ""


class RefusalQuery(ListQuery, frozen=True, kw_only=True):
    id: str = ""


class CloseGameForm(CsrfForm, frozen=True, kw_only=True):
    reason: str = ""


class GamesContext(PageContext, frozen=True, kw_only=True):
    template = "console/games/list.html"

    found: Page[GameSessionListItem]
    states: Sequence[str]
    administers: bool


class GameContext(PageContext, frozen=True, kw_only=True):
    template = "console/games/session.html"

    ref: str
    session: GameSession
    application_id: int
    application: str
    nick: str
    timeline: Timeline
    refusals: Sequence[RefusalView]
    administers: bool
    may_close: bool
    is_polling: bool
    call: ApiCall


class RefusalRecordContext(PageContext, frozen=True, kw_only=True):
    template = "console/games/record.html"

    record_id: str
    refusal: Refusal | None = None
    about: RefusalView | None = None  # the same with names
    subject: str = ""  # as much of it as may be shown
    ref: str = ""  # of the session, while it lasts
    command: str = ""  # that shows the same
    call: ApiCall | None = None  # and so does this


class GameScreens:
    def __init__(
        self,
        *,
        lists: GameSessionListStore,
        audit: AuditStore,
        administration: GameSessionAdmin,
        names: NameStore,
        finding: SearchStore,
        describer: RefusalDescriber,
        view: ConsoleView,
        clock: Clock,
    ) -> None:
        self._describer = describer
        self._lists = lists
        self._audit = audit
        self._administration = administration
        self._names = names
        self._finding = finding
        self._view = view
        self._clock = clock

    async def _list(self, _request: Request, admin: AdminRequest, query: GamesQuery) -> GamesContext:
        among = await self.visible_applications(admin)
        state = query.state if query.state in set(GameSessionState) else ""
        wanted = replace(query.page_request, search=search_by_ref(query.page_request.search))
        found = await self._lists.sessions(wanted, self._clock.now(), state=state, among=among)
        if among is not None:
            found = replace(found, rows=[without_people(line) for line in found.rows])
        return GamesContext(found=found, states=tuple(GameSessionState), administers=among is None)

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        session = await self._load_session(request, admin)
        now, administers = self._clock.now(), admin.rights.administers
        refusals = await self._lists.refusals(session.gsid) if administers else ()
        number = session.app_id or session.gapp_id
        people = await self._names.people_by_id({session.user_id} - {""}) if administers else {}
        context = GameContext(
            ref=session_ref(session.gsid),
            session=session,
            application_id=number,
            application=(await self._finding.application_names({number})).get(number, "") if number else "",
            nick=people[session.user_id].nick if session.user_id in people else "",
            timeline=build_timeline(session, refusals, now),
            refusals=await self._describer.describe(refusals, self._view.words(request)),
            administers=administers,
            may_close=administers and session.state in OPEN_STATES,
            is_polling=session.is_waited_for(now),
            call=session_call(session, number, administers=administers),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def confirm_close(self, request: Request, admin: AdminRequest) -> Confirmation:
        require_operation(admin.rights, Operation.ADMINISTER)
        session, t = await self._load_session(request, admin), self._view.words(request)
        ref = session_ref(session.gsid)
        is_confirmed = session.state is GameSessionState.CONFIRMED
        return Confirmation(
            title=t("games.close_title", ref=ref),
            trail=[(t("games.title", ref=ref), f"{ENTRY.path}/{ref}")],
            text=t("games.close_text"),
            consequences=[
                t("games.close_game"),
                t("games.close_player" if is_confirmed else "games.close_page"),
                t("games.close_recorded"),
            ],
            field=ConfirmationField(
                name="reason",
                label=t("games.close_reason"),
                hint=t("games.close_reason_hint"),
                max_length=MAX_REASON_LENGTH,
                keeps_text=True,
            ),
            button=t("games.close"),
        )

    async def close(self, request: Request, admin: AdminRequest, form: CloseGameForm) -> Response:
        require_operation(admin.rights, Operation.ADMINISTER)
        session = await self._load_session(request, admin)
        if not await self._administration.close(session.gsid, form.reason.strip(), admin.origin):
            raise SessionOver
        return self._view.redirect_with_flash(f"{ENTRY.path}/{session_ref(session.gsid)}", "game_closed")

    async def look_up_record(self, request: Request, admin: AdminRequest) -> Response:
        """The record behind the error ID that a refused game shows (interface §4.3)."""
        require_operation(admin.rights, Operation.ADMINISTER)
        record_id = read_query(request, RefusalQuery).id.strip()
        found = await self._audit.find_record(record_id) if record_id else None
        if isinstance(found, AuditRecord):
            return see_other(f"{ConsoleEntry.ACTIVITY.path}/{found.record_id}")
        if found is None:
            context = RefusalRecordContext(record_id=record_id)
            return self._view.render(request, admin, ENTRY, context, status=404 if record_id else None)
        is_gsid = GSID_PATTERN.fullmatch(found.subject) is not None
        lasting = await self._lists.find_session(session_ref(found.subject), self._clock.now()) if is_gsid else None
        context = RefusalRecordContext(
            record_id=record_id,
            refusal=found,
            about=(await self._describer.describe([found], self._view.words(request)))[0],
            subject=session_ref(found.subject) if is_gsid else found.subject,
            ref=session_ref(found.subject) if lasting is not None else "",
            command=f"{SHOW_RECORD_COMMAND} {found.record_id}",
            call=record_call(redact_record(found, admin.rights)),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _load_session(self, request: Request, admin: AdminRequest) -> GameSession:
        ref: str = request.path_params["ref"]
        among = await self.visible_applications(admin)
        session = await self._lists.find_session(ref, self._clock.now()) if REF_PATTERN.fullmatch(ref) else None
        if session is None:
            raise NotFound("no such game session") if among is None else NoRight("no such game session")
        if among is not None and not {session.app_id, session.gapp_id} & set(among):
            raise NoRight("no such game session")
        return session

    async def visible_applications(self, admin: AdminRequest) -> Collection[int] | None:
        """The applications whose sessions they may see; None for all. Raises NoRight if there is none."""
        if admin.rights.administers:
            return None
        found = []
        for number in sorted(admin.visibility.applications)[:MAX_APPLICATIONS]:
            authenticated = (await self._view.for_application(admin, number)).authenticated
            if is_open(authenticated.rights, Operation.APPLICATION_GET, authenticated.target):
                found.append(number)
        if not found:
            require_operation(admin.rights, Operation.ADMINISTER)
        return found

    def routes(self) -> Sequence[ConsoleRoute]:
        view = self._view
        return [
            *ListScreen(view=view, path="/games", query=GamesQuery, page=self._list, file=sessions_file).routes(),
            view.page("/games/record", self.look_up_record),
            view.page("/games/{ref}", self.show),
            *view.confirmation("/games/{ref}/close", CloseGameForm, self.confirm_close, self.close),
        ]


SESSION_COLUMNS: Final = {
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


def sessions_file(page: GamesContext) -> CsvFile[GameSessionListItem]:
    return CsvFile(name="game-sessions", columns=SESSION_COLUMNS, rows=page.found.rows)


def search_by_ref(search: str) -> str:
    """A whole gsid is found by its prefix."""
    return search.strip().lower()[:REF_LENGTH] if GSID_PATTERN.fullmatch(search.strip().lower()) else search


def without_people(line: GameSessionListItem) -> GameSessionListItem:
    return replace(line, user_id="", nick="", address="")
