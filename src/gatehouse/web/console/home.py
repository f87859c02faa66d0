"""Home: who came in, what waits, what ends soon, and what is still to be set up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.home import Amounts, EndingSoon, HomeStore
from gatehouse.admin.risks import Risk
from gatehouse.audit.model import Counted, Tallied
from gatehouse.audit.store import TallyStore
from gatehouse.kernel.clock import Clock
from gatehouse.web.console.desk import ConsoleDesk, Guest
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.setup import SampleCommands

HOUR: Final = 3_600
SHOWN_HOURS: Final = 24
SOON: Final = 14 * 86_400  # seconds
ENDING_MOST: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class HourLine:
    at: int
    signed_in: int = 0
    refused: int = 0
    game: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Something to set up; the words are `home.task_<name>` and `home.task_<name>_text`."""

    name: str
    address: str
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeContext(PageContext):
    template = "console/home.html"

    hours: tuple[HourLine, ...]
    chart: str  # the same as JSON, for the picture
    amounts: Amounts
    ending: Sequence[EndingSoon]
    tasks: tuple[Task, ...]
    risks: Sequence[Risk]
    samples: SampleCommands


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetingContext(PageContext):
    """For those who administer a part of it only."""

    template = "console/greeting.html"

    projects: int
    applications: int
    may_publish: bool
    is_anything: bool


class HomeScreens:
    """`sends_mail`: whether letters get out of the house. `samples`: how to see a sign-in at work."""

    def __init__(
        self,
        *,
        store: HomeStore,
        tallies: TallyStore,
        desk: ConsoleDesk,
        clock: Clock,
        sends_mail: bool,
        risks: Sequence[Risk],
        samples: SampleCommands,
    ) -> None:
        self._risks = tuple(risks)
        self._samples = samples
        self._store = store
        self._tallies = tallies
        self._desk = desk
        self._clock = clock
        self._sends_mail = sends_mail

    async def show(self, request: Request, guest: Guest) -> Response:
        sight = guest.sight
        if not sight.everything:
            context = GreetingContext(
                projects=len(sight.projects),
                applications=len(sight.applications),
                may_publish=sight.may_publish,
                is_anything=sight.is_anything,
            )
            return self._desk.show(request, guest, Entry.HOME, context)
        now = self._clock.now()
        first = now - now % HOUR - (SHOWN_HOURS - 1) * HOUR
        hours = by_hour(await self._tallies.since(first), first)
        amounts = await self._store.amounts(now)
        return self._desk.show(
            request,
            guest,
            Entry.HOME,
            HomeContext(
                hours=hours,
                chart=chart_of(hours),
                amounts=amounts,
                ending=await self._store.ending(now, now + SOON, ENDING_MOST),
                tasks=tasks(amounts, sends_mail=self._sends_mail),
                risks=self._risks,
                samples=self._samples,
            ),
        )

    def screens(self) -> Sequence[Screen]:
        return [self._desk.shown("", self.show)]


def by_hour(tallied: Sequence[Tallied], first: int) -> tuple[HourLine, ...]:
    times = {(one.hour, one.what): one.times for one in tallied}
    return tuple(
        HourLine(
            at=at,
            signed_in=times.get((at, Counted.SIGNED_IN), 0),
            refused=times.get((at, Counted.REFUSED), 0),
            game=times.get((at, Counted.GAME), 0),
        )
        for at in range(first, first + SHOWN_HOURS * HOUR, HOUR)
    )


def chart_of(hours: Sequence[HourLine]) -> str:
    columns = [[getattr(line, name) for line in hours] for name in ("at", "signed_in", "refused", "game")]
    return msgspec.json.encode(columns).decode()


def tasks(amounts: Amounts, *, sends_mail: bool) -> tuple[Task, ...]:
    return (
        Task(name="factor", address=Path.ACCOUNT, done=amounts.administrators_with_factor > 0),
        Task(name="mail", address=f"{Entry.SETTINGS.path}/email", done=sends_mail),
        Task(name="project", address=f"{Entry.PROJECTS.path}/new", done=amounts.projects > 0),
        Task(name="application", address=Entry.APPLICATIONS.path, done=amounts.applications > 0),
        Task(name="roles", address=Entry.ROLES.path, done=amounts.roles > 0),
        Task(name="client", address=Entry.APPLICATIONS.path, done=amounts.clients > 0),
    )
