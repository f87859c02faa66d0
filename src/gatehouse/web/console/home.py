"""Home: sign-ins, pending items, what ends soon, and open setup tasks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.home import EndingSoon, HomeStore, InstallationCounts
from gatehouse.admin.settings import Risk
from gatehouse.audit.model import HourlyTally, TallyKind, TallyStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.times import HOUR
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.setup import SampleCommands

SHOWN_HOURS: Final = 24
ENDING_SOON_SECONDS: Final = 14 * 86_400  # seconds
MAX_ENDING: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class HourLine:
    at: int
    signed_in: int = 0
    refused: int = 0
    game: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupTask:
    """Something to set up; the texts are `home.task_<name>` and `home.task_<name>_text`."""

    name: str
    address: str
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeContext(PageContext):
    template = "console/home.html"

    hours: tuple[HourLine, ...]
    chart: str  # the same as JSON, for the picture
    amounts: InstallationCounts
    ending: Sequence[EndingSoon]
    tasks: tuple[SetupTask, ...]
    risks: Sequence[Risk]
    samples: SampleCommands


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetingContext(PageContext):
    """For those who administer only a part of the installation."""

    template = "console/greeting.html"

    projects: int
    applications: int
    may_publish: bool
    has_anything: bool


class HomeScreens:
    """`sends_mail`: whether a mail server is configured. `samples`: the commands that start the samples."""

    def __init__(
        self,
        *,
        store: HomeStore,
        tallies: TallyStore,
        view: ConsoleView,
        clock: Clock,
        sends_mail: Callable[[], bool],
        risks: Callable[[], Sequence[Risk]],
        samples: SampleCommands,
    ) -> None:
        self._risks = risks
        self._samples = samples
        self._store = store
        self._tallies = tallies
        self._view = view
        self._clock = clock
        self._sends_mail = sends_mail

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        visibility = admin.visibility
        if not visibility.everything:
            context = GreetingContext(
                projects=len(visibility.projects),
                applications=len(visibility.applications),
                may_publish=visibility.may_publish,
                has_anything=visibility.has_any,
            )
            return self._view.render(request, admin, ConsoleEntry.HOME, context)
        now = self._clock.now()
        first = now - now % HOUR - (SHOWN_HOURS - 1) * HOUR
        hours = hour_lines(await self._tallies.counts_since(first), first)
        amounts = await self._store.counts(now)
        return self._view.render(
            request,
            admin,
            ConsoleEntry.HOME,
            HomeContext(
                hours=hours,
                chart=chart_json(hours),
                amounts=amounts,
                ending=await self._store.ending_soon(now, now + ENDING_SOON_SECONDS, MAX_ENDING),
                tasks=setup_tasks(amounts, sends_mail=self._sends_mail()),
                risks=self._risks(),
                samples=self._samples,
            ),
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self._view.page("", self.show)]


def hour_lines(tallied: Sequence[HourlyTally], first: int) -> tuple[HourLine, ...]:
    times = {(one.hour, one.what): one.times for one in tallied}
    return tuple(
        HourLine(
            at=at,
            signed_in=times.get((at, TallyKind.SIGNED_IN), 0),
            refused=times.get((at, TallyKind.REFUSED), 0),
            game=times.get((at, TallyKind.GAME), 0),
        )
        for at in range(first, first + SHOWN_HOURS * HOUR, HOUR)
    )


def chart_json(hours: Sequence[HourLine]) -> str:
    columns = [[getattr(line, name) for line in hours] for name in ("at", "signed_in", "refused", "game")]
    return msgspec.json.encode(columns).decode()


def setup_tasks(amounts: InstallationCounts, *, sends_mail: bool) -> tuple[SetupTask, ...]:
    return (
        SetupTask(name="factor", address=Path.ACCOUNT, done=amounts.administrators_with_factor > 0),
        SetupTask(name="mail", address=f"{ConsoleEntry.SETTINGS.path}/email", done=sends_mail),
        SetupTask(name="project", address=f"{ConsoleEntry.PROJECTS.path}/new", done=amounts.projects > 0),
        SetupTask(name="application", address=ConsoleEntry.APPLICATIONS.path, done=amounts.applications > 0),
        SetupTask(name="roles", address=ConsoleEntry.ROLES.path, done=amounts.roles > 0),
        SetupTask(name="client", address=ConsoleEntry.APPLICATIONS.path, done=amounts.clients > 0),
    )
