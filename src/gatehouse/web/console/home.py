"""Home: figures of a period, what ends soon, open setup tasks and the latest activity; projects for their owners."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.activity import ActivityFilter, ActivityStore
from gatehouse.admin.home import (
    ApplicationCard,
    EndingSoon,
    HomeStore,
    InstallationCounts,
    Period,
    PeriodFigures,
    ProjectCard,
    TimeBucket,
    TopApplication,
)
from gatehouse.admin.risks import Risk
from gatehouse.admin.visible_audit_log import VisibleAuditLog
from gatehouse.images.model import image_path
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.times import DAY, HOUR
from gatehouse.web.console.activity import LogVerification, RecordDescriber, RecordView
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.setup import SampleCommands

PERIODS: Final[Mapping[str, Period]] = {
    "24h": Period(hours=24, bucket_hours=1),
    "7d": Period(hours=7 * 24, bucket_hours=6),
    "30d": Period(hours=30 * 24, bucket_hours=24),
}
DEFAULT_PERIOD: Final = "24h"
ENDING_SOON_SECONDS: Final = 14 * DAY
MAX_ENDING: Final = 8
MAX_TOP: Final = 5  # applications
MAX_LATEST: Final = 8  # records
MAX_CARDS: Final = 12


class PeriodQuery(msgspec.Struct, frozen=True, kw_only=True):
    period: str = DEFAULT_PERIOD


class SetupTask(msgspec.Struct, frozen=True, kw_only=True):
    """Something to set up; the texts are `home.task_<name>` and `home.task_<name>_text`."""

    name: str
    address: str
    done: bool


class SampleFactorReader(Protocol):
    async def applications(self, now: int) -> Sequence[str]:
        """Return the names of applications whose players sent the factor of a code sample lately."""


class HomeContext(PageContext, frozen=True, kw_only=True):
    template = "console/home.html"

    period: str
    figures: PeriodFigures
    chart: str  # the buckets as JSON, for the picture
    bucket_seconds: int
    amounts: InstallationCounts
    top: Sequence[TopApplication]
    ending: Sequence[EndingSoon]
    latest: Sequence[RecordView]
    tasks: Sequence[SetupTask]  # none once all are done
    risks: Sequence[Risk]
    sample_factor_applications: Sequence[str]  # whose players all send the same factor
    log_problems: Sequence[str]
    samples: SampleCommands
    periods: Sequence[str] = tuple(PERIODS)


class OwnerHomeContext(PageContext, frozen=True, kw_only=True):
    """For those who administer only a part of the installation."""

    template = "console/owner_home.html"

    projects: Sequence[ProjectCard]
    project_count: int
    applications: Sequence[ApplicationCard]
    application_count: int
    latest: Sequence[RecordView]
    may_publish: bool


class HomeScreens:
    """`sends_mail`: whether a mail server is configured. `samples`: the commands that start the samples."""

    def __init__(
        self,
        *,
        store: HomeStore,
        log: VisibleAuditLog,
        activity: ActivityStore,
        describer: RecordDescriber,
        verification: LogVerification,
        view: ConsoleView,
        clock: Clock,
        sends_mail: Callable[[], bool],
        risks: Callable[[], Sequence[Risk]],
        sample_factors: SampleFactorReader,
        samples: SampleCommands,
    ) -> None:
        self._store = store
        self._sample_factors = sample_factors
        self._log = log
        self._activity = activity
        self._describer = describer
        self._verification = verification
        self._view = view
        self._clock = clock
        self._sends_mail = sends_mail
        self._risks = risks
        self._samples = samples

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        """The installation for administrators, projects for others; players are sent to their account."""
        if not admin.visibility.has_any:
            return see_other(Path.ACCOUNT)
        if not admin.visibility.everything:
            return await self._show_to_owner(request, admin)
        asked = read_query(request, PeriodQuery).period
        name = asked if asked in PERIODS else DEFAULT_PERIOD
        period, now = PERIODS[name], self._clock.now()
        figures = await self._store.period_figures(period, now)
        amounts = await self._store.counts()
        context = HomeContext(
            period=name,
            figures=figures,
            chart=chart_json(figures.buckets),
            bucket_seconds=period.bucket_hours * HOUR,
            amounts=amounts,
            top=await self._store.top_applications(period.start(now), MAX_TOP),
            ending=await self._store.ending_soon(now, now + ENDING_SOON_SECONDS, MAX_ENDING),
            latest=await self._latest(request, admin, ActivityFilter()),
            tasks=open_tasks(setup_tasks(amounts, sends_mail=self._sends_mail())),
            risks=self._risks(),
            sample_factor_applications=await self._sample_factors.applications(now),
            log_problems=(await self._verification.state()).problems,
            samples=self._samples,
        )
        return self._view.render(request, admin, ConsoleEntry.HOME, context)

    async def _show_to_owner(self, request: Request, admin: AdminRequest) -> Response:
        visibility, now = admin.visibility, self._clock.now()
        latest: Sequence[RecordView] = ()
        if visibility.projects:
            subjects = await self._log.subjects(admin.authenticated, visibility)
            latest = await self._latest(request, admin, ActivityFilter(subjects=subjects))
        cards = await self._store.application_cards(
            visibility.applications, now, now + ENDING_SOON_SECONDS, MAX_CARDS
        )
        context = OwnerHomeContext(
            projects=await self._store.project_cards(visibility.projects, now, now + ENDING_SOON_SECONDS, MAX_CARDS),
            project_count=len(visibility.projects),
            applications=[replace(one, logo=image_path(one.logo)) for one in cards],
            application_count=len(visibility.applications),
            latest=latest,
            may_publish=visibility.may_publish,
        )
        return self._view.render(request, admin, ConsoleEntry.HOME, context)

    async def _latest(
        self, request: Request, admin: AdminRequest, activity_filter: ActivityFilter
    ) -> Sequence[RecordView]:
        found = await self._activity.activity(activity_filter, MAX_LATEST)
        return await self._describer.describe(found.records, admin, self._view.words(request))

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self._view.page("", self.show)]


def chart_json(buckets: Sequence[TimeBucket]) -> str:
    columns = [[getattr(bucket, name) for bucket in buckets] for name in ("at", "signed_in", "refused", "game")]
    return msgspec.json.encode(columns).decode()


def setup_tasks(amounts: InstallationCounts, *, sends_mail: bool) -> Sequence[SetupTask]:
    return (
        SetupTask(
            name="factor",
            address=f"{Path.TOTP}?next={ConsoleEntry.HOME.path}",
            done=amounts.administrators_with_factor > 0,
        ),
        SetupTask(name="mail", address=f"{ConsoleEntry.SETTINGS.path}/email", done=sends_mail),
        SetupTask(name="project", address=f"{ConsoleEntry.PROJECTS.path}/new", done=amounts.projects > 0),
        SetupTask(name="application", address=ConsoleEntry.APPLICATIONS.path, done=amounts.applications > 0),
        SetupTask(name="roles", address=ConsoleEntry.ROLES.path, done=amounts.roles > 0),
        SetupTask(name="client", address=ConsoleEntry.APPLICATIONS.path, done=amounts.clients > 0),
    )


def open_tasks(tasks: Sequence[SetupTask]) -> Sequence[SetupTask]:
    """The whole list while something is open, then none."""
    return () if all(task.done for task in tasks) else tasks
