"""Game sign-ins of the last hour or day, with their results."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec
from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request

from gatehouse.admin.games import REF_PATTERN, session_ref
from gatehouse.admin.names import NameStore
from gatehouse.admin.recent_games import GameResult, RecentGame, RecentGames, RecentGamesFilter, RecentGameStore
from gatehouse.admin.search import SearchStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.times import DAY, HOUR
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.refusals import RefusalDescriber
from gatehouse.web.console.view import (
    EXPECTED_ERRORS,
    AdminRequest,
    ConsoleRoute,
    ConsoleView,
    FormProblem,
    problem_from,
)
from gatehouse.web.pages.contexts import PageContext

PERIODS: Final[Mapping[str, int]] = {"1h": HOUR, "24h": DAY}
DEFAULT_PERIOD: Final = "24h"
PERSON: Final = {"user_id": ComboboxKind.PERSON}
APPLICATION: Final = {"application_id": ComboboxKind.APPLICATION}


class RecentGamesQuery(ListQuery, frozen=True, kw_only=True):
    period: str = DEFAULT_PERIOD
    result: str = ""
    user_id: str = ""
    application_id: str = ""


class RecentGamesContext(PageContext, frozen=True, kw_only=True):
    template = "console/games/recent.html"

    found: RecentGames
    people: Mapping[str, str]  # names by ID
    reasons: Mapping[str, Markup]  # with names, by the ID of the record
    applications: Mapping[int, str]
    picked: Mapping[str, ComboboxOption]
    period: str
    periods: Sequence[str] = tuple(PERIODS)
    results: Sequence[str] = tuple(GameResult)
    administers: bool
    problem: FormProblem | None = None


VisibleApplications = Callable[[AdminRequest], Awaitable[Collection[int] | None]]


class RecentGameScreen(msgspec.Struct, kw_only=True, eq=False):
    """`visible_applications`: those whose sessions the viewer may see; None for all."""

    lists: RecentGameStore
    names: NameStore
    finding: SearchStore
    describer: RefusalDescriber
    lookup: Lookup
    view: ConsoleView
    clock: Clock
    visible_applications: VisibleApplications

    async def _list(self, request: Request, admin: AdminRequest, typed: RecentGamesQuery) -> RecentGamesContext:
        among = await self.visible_applications(admin)
        fields = {**APPLICATION, **(PERSON if among is None else {})}
        query, problem = typed, None
        try:
            query = await self.lookup.resolve(admin, typed, fields)
        except EXPECTED_ERRORS as error:
            problem = problem_from(error)
            query = RecentGamesQuery(period=typed.period)
        period = query.period if query.period in PERIODS else DEFAULT_PERIOD
        found = await self.lists.recent(
            RecentGamesFilter(
                since=self.clock.now() - PERIODS[period],
                result=GameResult(query.result) if query.result in set(GameResult) else None,
                user_id=query.user_id if among is None else "",
                application_id=int(query.application_id) if query.application_id.isdecimal() else 0,
                among=among,
            )
        )
        if among is not None:
            found = replace(found, rows=[replace(row, user_id="", refusal=None) for row in found.rows])
        refusals = [row.refusal for row in found.rows if row.refusal is not None]
        described = await self.describer.describe(refusals, self.view.words(request))
        people = await self.names.people_by_id({row.user_id for row in found.rows} - {""})
        return RecentGamesContext(
            found=found,
            people={user_id: one.nick for user_id, one in people.items()},
            reasons={one.refusal.record_id: one.why for one in described if one.why is not None},
            applications=await self.finding.application_names({row.application_id for row in found.rows} - {0}),
            picked=await self.lookup.describe(admin, typed, fields),
            period=period,
            administers=among is None,
            problem=problem,
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        return ListScreen(
            view=self.view, path="/games/recent", query=RecentGamesQuery, page=self._list, file=recent_file
        ).routes()


def short_ref(row: RecentGame) -> str:
    """The beginning of the gsid; the whole one would open the session (R4)."""
    ref = session_ref(row.gsid)
    return ref if REF_PATTERN.fullmatch(ref) else ""


RECENT_COLUMNS: Final = {
    "at": lambda row: row.at,
    "result": lambda row: row.result.value,
    "session": short_ref,
    "application_id": lambda row: row.application_id or None,
    "user_id": lambda row: row.user_id,
    "reason": lambda row: row.reason,
    "record_id": lambda row: row.record_id,
}


def recent_file(page: RecentGamesContext) -> CsvFile[RecentGame]:
    return CsvFile(name="recent-game-sign-ins", columns=RECENT_COLUMNS, rows=page.found.rows)
