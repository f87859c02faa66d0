"""Access, who can: people beside the rules they hold in one application, a page at a time."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace
from starlette.requests import Request

from gatehouse.admin.names import NamedPerson, NameStore
from gatehouse.admin.own_permissions import rule_prefix
from gatehouse.admin.paging import EXPORT_MOST, Page
from gatehouse.admin.search import SearchStore
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.evaluation.contributions import SourceKind
from gatehouse.permissions.explanation.wording import time_text
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.rules import Rule, Scope
from gatehouse.permissions.questions.check import refuse_about_everyone
from gatehouse.permissions.questions.parsing import read_rule, read_scope
from gatehouse.permissions.questions.who_can import HolderCell, HolderMatrix, HolderMatrixQuery, HolderRow, WhoCan
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.permissions.rights.secret_data import RecordPart
from gatehouse.permissions.store import ProjectStore
from gatehouse.web.console.access_check import ENTRY
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.lookup import Lookup, readable_rules
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import (
    EXPECTED_ERRORS,
    AdminRequest,
    ConsoleRoute,
    ConsoleView,
    FormProblem,
    problem_from,
)
from gatehouse.web.pages.contexts import PageContext

PAGE_ROWS: Final = 25
MAX_COLUMNS: Final = 12
MAX_EXPORT_CELLS: Final = 1_000_000  # a file has every rule; where those are very many it has fewer people
MAX_PEOPLE_FOUND: Final = 500  # that a search finds
EXPORT_PAGE_ROWS: Final = 1_000
MAX_EXPORT_PAGE_CELLS: Final = 100_000  # of a file, built at a time
FIELDS: Final = {"application_id": ComboboxKind.APPLICATION, "project_id": ComboboxKind.PROJECT}
NO_RULES: Final[Page[Rule]] = Page(rows=(), total=0, size=MAX_COLUMNS)
# The values of a cell, the simplest first; the texts are `access.cell_<name>`.
CELL_MARKS: Final[Sequence[tuple[str, frozenset[SourceKind]]]] = (
    ("given", frozenset({SourceKind.DIRECT, SourceKind.ASSIGNED_ROLE})),
    ("group", frozenset({SourceKind.GROUP_GRANT})),
    ("condition", frozenset({SourceKind.CONDITION})),
    ("everyone", frozenset({SourceKind.DEFAULT_ROLE, SourceKind.SCHEMA})),
)


class WhoCanQuery(ListQuery, frozen=True, kw_only=True):
    application_id: str = ""
    project_id: str = ""
    rules: str = ""  # what the rules begin with; several by commas
    columns: int = 1  # the page of rules
    after: str = ""


class WhoCanCell(msgspec.Struct, frozen=True, kw_only=True):
    mark: str  # empty: they do not have it
    until: int
    why: str  # the address of the cell's decision tree
    roles: Sequence[str] = ()  # that decide
    assigned_role: str = ""  # whose removal takes the rule away


class WhoCanRow(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    nick: str
    person: NamedPerson | None  # None of a deleted account
    cells: Sequence[WhoCanCell]  # in the order of the rules


class WhoCanContext(PageContext, frozen=True, kw_only=True):
    template = "console/access/who.html"

    picked: Mapping[str, ComboboxOption]
    application: str = ""
    rules: Page[Rule] = NO_RULES
    rule_prefixes: Sequence[str] = ()  # of the rules there are
    rows: Sequence[WhoCanRow] = ()
    page_query: str = ""  # the query of this page, without where it begins
    filter_query: str = ""  # the same without the page of rules
    after: str = ""  # where the next one begins; empty when there is none
    scope: Scope | None = None
    call: ApiCall | None = None
    is_answered: bool = False
    may_read_schema: bool = False
    removal: str = ""  # where the removal of a role is reviewed; empty for those who may not
    back: str = ""  # this page
    problem: FormProblem | None = None


class WhoCanScreens:
    def __init__(
        self,
        *,
        who_can: WhoCan,
        projects: ProjectStore,
        names: NameStore,
        finding: SearchStore,
        lookup: Lookup,
        view: ConsoleView,
    ) -> None:
        self._who_can = who_can
        self._projects = projects
        self._names = names
        self._finding = finding
        self._lookup = lookup
        self._view = view

    async def _list(
        self, _request: Request, admin: AdminRequest, query: WhoCanQuery
    ) -> WhoCanContext | CsvFile[WhoCanRow]:
        try:
            return await self._answer(admin, query)
        except EXPECTED_ERRORS as error:
            return replace(await self._empty_context(admin, query), problem=problem_from(error))

    async def _empty_context(self, admin: AdminRequest, query: WhoCanQuery) -> WhoCanContext:
        return WhoCanContext(picked=await self._lookup.describe(admin, query, FIELDS))

    async def _answer(self, admin: AdminRequest, query: WhoCanQuery) -> WhoCanContext | CsvFile[WhoCanRow]:
        blank = await self._empty_context(admin, query)
        query = await self._lookup.resolve(admin, query, FIELDS)
        if not query.application_id:
            return blank
        application_id = int(query.application_id)
        admin = await self._view.for_application(admin, application_id)
        refuse_about_everyone(admin.authenticated)
        model = admin.authenticated.named_application()
        offered = [rule for rule, _ in await run_off_loop(OFF_LOOP_WEIGHT, readable_rules, admin)]
        rules = filter_rules(offered, query.rules)
        scope = await self._resolve_scope(admin, query.project_id.strip())
        people = await self._search_people(admin, query.q)
        page = rules_page(rules, query.columns)
        ask = HolderMatrixQuery(
            rules=tuple(rules if query.is_file else page.rows),
            scope=scope,
            after=query.after,
            limit=PAGE_ROWS,
            people=people,
            include_without_rules=people is not None and admin.rights.administers,
        )
        if query.is_file:
            return self._export(model, ask)
        found = await self._who_can.page(model, ask) if rules else HolderMatrix(rows=(), after=None)
        return replace(
            blank,
            application=model.application.name,
            rules=page,
            rule_prefixes=rule_prefixes(offered),
            rows=[*build_rows(application_id, found.rows, await self._load_names(found.rows), ask)],
            page_query=query.kept,
            filter_query=query.without("columns"),
            after=found.after or "",
            scope=scope,
            call=members_call(application_id, ask) if rules else None,
            is_answered=True,
            may_read_schema=bool(offered),
            removal=removal_address(admin, application_id, scope),
            back=f"{ENTRY.path}/who?{query.kept.replace('&amp;', '&').rstrip('&')}",
        )

    async def _resolve_scope(self, admin: AdminRequest, name: str) -> Scope:
        """In a project that does not exist no one has anything, and others learn no more (checklist PA-13)."""
        scope = read_scope(name or None, None, "data").scope
        if scope.is_root:
            return scope
        try:
            return Scope((await self._projects.project(scope.project_id)).project.project_id)
        except NotFound:
            if admin.rights.administers:
                raise
            return scope

    async def _search_people(self, admin: AdminRequest, text: str) -> frozenset[str] | None:
        """By nick or ID, for administrators also by login; others see only people who have something."""
        if not text.strip():
            return None
        found = await self._finding.people(text.strip(), MAX_PEOPLE_FOUND, with_logins=admin.rights.administers)
        return frozenset(one.user_id for one in found)

    async def _load_names(self, rows: Sequence[HolderRow]) -> Mapping[str, NamedPerson]:
        return await self._names.people_by_id([row.user_id for row in rows])

    def _export(self, model: ApplicationModel, ask: HolderMatrixQuery) -> CsvFile[WhoCanRow]:
        application_id = model.application.application_id

        async def pages() -> AsyncIterator[Iterator[WhoCanRow]]:
            """A page of people at a time: the file is never in memory whole."""
            left = min(EXPORT_MOST, MAX_EXPORT_CELLS // max(1, len(ask.rules)))
            after: str | None = ""
            while ask.rules and after is not None and left > 0:
                limit = min(left, EXPORT_PAGE_ROWS, max(1, MAX_EXPORT_PAGE_CELLS // len(ask.rules)))
                page = await self._who_can.page(model, replace(ask, limit=limit, after=after))
                yield build_rows(application_id, page.rows, await self._load_names(page.rows), ask)
                left, after = left - len(page.rows), page.after

        return CsvFile(name="who-can", columns=csv_columns(ask.rules), pages=pages())

    def routes(self) -> Sequence[ConsoleRoute]:
        return ListScreen(view=self._view, path="/access/who", query=WhoCanQuery, page=self._list).routes()


def build_rows(
    application_id: int, rows: Iterable[HolderRow], names: Mapping[str, NamedPerson], ask: HolderMatrixQuery
) -> Iterator[WhoCanRow]:
    queries = {rule: explain_query(application_id, rule, ask.scope) for rule in ask.rules}
    for row in rows:
        yield WhoCanRow(
            user_id=row.user_id,
            nick=names[row.user_id].nick if row.user_id in names else "",
            person=names.get(row.user_id),
            cells=[cell_of(row, rule, query) for rule, query in queries.items()],
        )


def removal_address(admin: AdminRequest, application_id: int, scope: Scope) -> str:
    may = (
        admin.rights.can_write(RecordPart.ROLES, "")
        if scope.is_root
        else is_open(admin.rights, Operation.MEMBERSHIP_SAVE, GuardTarget(project_id=scope.project_id))
    )
    return f"{ConsoleEntry.APPLICATIONS.path}/{application_id}/users/review" if may else ""


def filter_rules(offered: Sequence[Rule], text: str) -> Sequence[Rule]:
    """The rules that start with one of the prefixes. Those who may not read the schema must name them whole."""
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    if offered:
        return [rule for rule in offered if not wanted or has_prefix(rule, wanted)]
    return [rule for part in wanted for rule in read_rule(part, "rules").rules]


def rule_prefixes(offered: Sequence[Rule]) -> Sequence[str]:
    """The families first, which find many at once, then each rule."""
    families = dict.fromkeys(f"{rule_prefix(rule)}." for rule in offered if rule_prefix(rule))
    return [*families, *dict.fromkeys(rule.path for rule in offered)]


def has_prefix(rule: Rule, prefixes: Collection[str]) -> bool:
    return any(rule.path.startswith(prefix) or str(rule).startswith(prefix) for prefix in prefixes)


def mark_of(cell: HolderCell) -> str:
    return next(name for name, kinds in CELL_MARKS if cell.kinds & kinds)


def rules_page(rules: Sequence[Rule], number: int) -> Page[Rule]:
    """A number past the end gives the last page: the filter may have found more before."""
    page = replace(NO_RULES, total=len(rules))
    here = min(max(1, number), page.last)
    return replace(page, number=here, rows=rules[(here - 1) * MAX_COLUMNS : here * MAX_COLUMNS])


def explain_query(application_id: int, rule: Rule, scope: Scope) -> str:
    """The query that asks for the rule's explanation; only the person is missing."""
    project = {"project_id": scope.project_id} if scope.project_id else {}
    return urlencode({"application_id": application_id, "rule": str(rule), **project})


def cell_of(row: HolderRow, rule: Rule, query: str) -> WhoCanCell:
    cell = row.cells.get(rule)
    return WhoCanCell(
        roles=cell.roles if cell else (),
        assigned_role=cell.assigned_role if cell else "",
        mark=mark_of(cell) if cell else "",
        until=cell.until if cell else 0,
        why=f"{ENTRY.path}/check?user_id={quote(row.user_id)}&{query}",
    )


def csv_columns(rules: Sequence[Rule]) -> Mapping[str, Callable[[WhoCanRow], object]]:
    def cell(place: int) -> Callable[[WhoCanRow], object]:
        return lambda row: cell_text(row.cells[place])

    return {
        "user_id": lambda row: row.user_id,
        "nick": lambda row: row.nick,
        **{str(rule): cell(place) for place, rule in enumerate(rules)},
    }


def cell_text(cell: WhoCanCell) -> str:
    return f"{cell.mark} until {time_text(cell.until)}" if cell.until else cell.mark


def members_call(application_id: int, ask: HolderMatrixQuery) -> ApiCall:
    project = {"project_id": ask.scope.project_id} if ask.scope.project_id else {}
    return ApiCall(
        path="members", body={"application_id": application_id, "data": {"rule": str(ask.rules[0]), **project}}
    )
