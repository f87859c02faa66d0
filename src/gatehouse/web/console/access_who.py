"""Access, who can: people beside the rules they hold in one application, a page at a time."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.holding import prefix_of
from gatehouse.admin.model.finding import FindingStore
from gatehouse.admin.model.names import NamedApplication, NamedPerson, NameStore
from gatehouse.admin.model.paging import EXPORT_MOST, Page
from gatehouse.kernel.background import HEAVY, run_off_loop
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.evaluation.gathering import SourceKind
from gatehouse.permissions.explanation.wording import moment
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.questions.asked import read_rule, read_scope
from gatehouse.permissions.questions.sight import refuse_about_everybody
from gatehouse.permissions.questions.who_can import Cell, Matrix, MatrixAsk, PersonRow, WhoCan
from gatehouse.permissions.store import ProjectStore
from gatehouse.web.console.access_check import HERE, TABS, read_application, rules_of
from gatehouse.web.console.choosing import Choosing
from gatehouse.web.console.desk import FORESEEN, ConsoleDesk, Guest, Problem, told
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_stream
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.parse import read_query

ROWS: Final = 25
COLUMNS_MOST: Final = 12
CELLS_IN_FILE: Final = 1_000_000  # a file has every rule; where those are very many it has fewer people
FOUND_MOST: Final = 500  # people whom a search finds
FILE_PAGE: Final = 1_000
CELLS_ON_PAGE: Final = 100_000  # of a file that are made at a time
NO_RULES: Final[Page[Rule]] = Page(rows=(), total=0, size=COLUMNS_MOST)
# What stands in a cell, the plainest first; the words are `access.cell_<name>`.
MARKS: Final[Sequence[tuple[str, frozenset[SourceKind]]]] = (
    ("given", frozenset({SourceKind.DIRECT, SourceKind.ASSIGNED_ROLE})),
    ("group", frozenset({SourceKind.GROUP_GRANT})),
    ("condition", frozenset({SourceKind.CONDITION})),
    ("everyone", frozenset({SourceKind.DEFAULT_ROLE, SourceKind.SCHEMA})),
)


class WhoQuery(msgspec.Struct, frozen=True, kw_only=True):
    application_id: str = ""
    project_id: str = ""
    rules: str = ""  # what the rules begin with; several by commas
    q: str = ""  # a person
    columns: int = 1  # the page of rules
    after: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoCell:
    mark: str  # empty: he does not have it
    until: int
    why: str  # the address of the cell's decision tree


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoRow:
    user_id: str
    nick: str
    cells: Sequence[WhoCell]  # in the order of the rules


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoContext(PageContext):
    template = "console/access/who.html"

    query: WhoQuery
    tabs: Sequence[tuple[str, str]] = TABS
    applications: Sequence[NamedApplication] = ()
    application: str = ""
    rules: Page[Rule] = NO_RULES
    beginnings: Sequence[str] = ()  # of the rules there are
    rows: Sequence[WhoRow] = ()
    kept: str = ""  # the query of this page, without where it begins
    kept_filter: str = ""  # the same without the page of rules
    after: str = ""  # where the next one begins; empty when there is none
    scope: Scope | None = None
    call: ApiCall | None = None
    asked: bool = False
    may_read_schema: bool = False
    problem: Problem | None = None


class WhoScreens:
    def __init__(
        self,
        *,
        who_can: WhoCan,
        projects: ProjectStore,
        names: NameStore,
        finding: FindingStore,
        choosing: Choosing,
        desk: ConsoleDesk,
    ) -> None:
        self._who_can = who_can
        self._projects = projects
        self._names = names
        self._finding = finding
        self._choosing = choosing
        self._desk = desk

    async def show(self, request: Request, guest: Guest) -> Response:
        query = read_query(request, WhoQuery)
        try:
            answer = await self._answered(guest, query)
        except FORESEEN as error:
            answer = replace(await self._blank(guest, query), problem=told(error))
        if isinstance(answer, Response):
            return answer
        status = answer.problem.status if answer.problem else None
        return self._desk.show(request, guest, HERE, answer, status=status)

    async def _blank(self, guest: Guest, query: WhoQuery) -> WhoContext:
        return WhoContext(query=query, applications=await self._choosing.applications(guest))

    async def _answered(self, guest: Guest, query: WhoQuery) -> WhoContext | Response:
        blank = await self._blank(guest, query)
        application_id = read_application(query.application_id)
        if not application_id:
            return blank
        about = await self._desk.about(guest, application_id)
        refuse_about_everybody(about.standing)
        model = about.standing.application()
        offered = [rule for rule, _ in await run_off_loop(HEAVY, rules_of, about)]
        rules = chosen(offered, query.rules)
        scope = await self._scope(about, query.project_id.strip())
        people = await self._searched(about, query.q)
        page = page_of(rules, query.columns)
        ask = MatrixAsk(
            rules=tuple(rules if query.format else page.rows),
            scope=scope,
            after=query.after,
            limit=ROWS,
            people=people,
            with_nothing=people is not None and about.rights.administers,
        )
        if query.format:
            return await self._file(model, ask)
        found = await self._who_can.page(model, ask) if rules else Matrix(rows=(), after=None)
        return replace(
            blank,
            application=model.application.name,
            rules=page,
            beginnings=beginnings(offered),
            rows=[*rows_of(application_id, found.rows, await self._names_of(found.rows), ask)],
            kept=kept(query, "columns") if page.number > 1 else kept(query),
            kept_filter=kept(query),
            after=found.after or "",
            scope=scope,
            call=api_call(application_id, ask) if rules else None,
            asked=True,
            may_read_schema=bool(offered),
        )

    async def _scope(self, about: Guest, name: str) -> Scope:
        """In a project that is not there nobody has anything, and that is all that others hear (checklist PA-13)."""
        scope = read_scope(name or None, None, "data").scope
        if scope.is_root:
            return scope
        try:
            return Scope((await self._projects.project(scope.project_id)).project.project_id)
        except NotFound:
            if about.rights.administers:
                raise
            return scope

    async def _searched(self, about: Guest, text: str) -> frozenset[str] | None:
        """By nick or id, and by login to whoever administers; to others only who has something is shown of them."""
        if not text.strip():
            return None
        found = await self._finding.people(text.strip(), FOUND_MOST, with_logins=about.rights.administers)
        return frozenset(one.user_id for one in found)

    async def _names_of(self, rows: Sequence[PersonRow]) -> Mapping[str, NamedPerson]:
        return await self._names.people([row.user_id for row in rows])

    async def _file(self, model: ApplicationModel, ask: MatrixAsk) -> Response:
        application_id = model.application.application_id

        async def pages() -> AsyncIterator[Iterator[WhoRow]]:
            """A page of people at a time: the file is never in memory whole."""
            left = min(EXPORT_MOST, CELLS_IN_FILE // max(1, len(ask.rules)))
            after: str | None = ""
            while ask.rules and after is not None and left > 0:
                limit = min(left, FILE_PAGE, max(1, CELLS_ON_PAGE // len(ask.rules)))
                page = await self._who_can.page(model, replace(ask, limit=limit, after=after))
                yield rows_of(application_id, page.rows, await self._names_of(page.rows), ask)
                left, after = left - len(page.rows), page.after

        return csv_stream("who-can", columns(ask.rules), pages())

    def screens(self) -> Sequence[Screen]:
        return [self._desk.shown("/access/who", self.show)]


def rows_of(
    application_id: int, rows: Iterable[PersonRow], names: Mapping[str, NamedPerson], ask: MatrixAsk
) -> Iterator[WhoRow]:
    asked = {rule: question(application_id, rule, ask.scope) for rule in ask.rules}
    for row in rows:
        yield WhoRow(
            user_id=row.user_id,
            nick=names[row.user_id].nick if row.user_id in names else "",
            cells=[cell_of(row, rule, query) for rule, query in asked.items()],
        )


def chosen(offered: Sequence[Rule], text: str) -> Sequence[Rule]:
    """The rules that begin so. Who may not read the schema is offered none, and names them whole."""
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    if offered:
        return [rule for rule in offered if not wanted or begins(rule, wanted)]
    return [rule for part in wanted for rule in read_rule(part, "rules").rules]


def beginnings(offered: Sequence[Rule]) -> Sequence[str]:
    """The families first, which find many at once, then each rule."""
    families = dict.fromkeys(f"{prefix_of(rule)}." for rule in offered if prefix_of(rule))
    return [*families, *dict.fromkeys(rule.path for rule in offered)]


def begins(rule: Rule, prefixes: Collection[str]) -> bool:
    return any(rule.path.startswith(one) or str(rule).startswith(one) for one in prefixes)


def mark_of(cell: Cell) -> str:
    return next(name for name, kinds in MARKS if cell.kinds & kinds)


def page_of(rules: Sequence[Rule], number: int) -> Page[Rule]:
    """Past the end is the last one: the filter may have found more a moment ago."""
    page = replace(NO_RULES, total=len(rules))
    here = min(max(1, number), page.last)
    return replace(page, number=here, rows=rules[(here - 1) * COLUMNS_MOST : here * COLUMNS_MOST])


def kept(query: WhoQuery, *more: str) -> str:
    names = ("application_id", "project_id", "rules", "q", *more)
    return f"{urlencode({name: getattr(query, name) for name in names if getattr(query, name)})}&"


def question(application_id: int, rule: Rule, scope: Scope) -> str:
    """The query that asks for the rule's explanation; only the person is missing."""
    project = {"project_id": scope.project_id} if scope.project_id else {}
    return urlencode({"application_id": application_id, "rule": str(rule), **project})


def cell_of(row: PersonRow, rule: Rule, asked: str) -> WhoCell:
    cell = row.cells.get(rule)
    return WhoCell(
        mark=mark_of(cell) if cell else "",
        until=cell.until if cell else 0,
        why=f"{HERE.path}/check?user_id={quote(row.user_id)}&{asked}",
    )


def columns(rules: Sequence[Rule]) -> Mapping[str, Callable[[WhoRow], object]]:
    def cell(place: int) -> Callable[[WhoRow], object]:
        return lambda row: told_cell(row.cells[place])

    return {
        "user_id": lambda row: row.user_id,
        "nick": lambda row: row.nick,
        **{str(rule): cell(place) for place, rule in enumerate(rules)},
    }


def told_cell(cell: WhoCell) -> str:
    return f"{cell.mark} until {moment(cell.until)}" if cell.until else cell.mark


def api_call(application_id: int, ask: MatrixAsk) -> ApiCall:
    project = {"project_id": ask.scope.project_id} if ask.scope.project_id else {}
    return ApiCall(
        path="members", body={"application_id": application_id, "data": {"rule": str(ask.rules[0]), **project}}
    )
