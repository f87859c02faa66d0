"""What the sections of the console share, each built once."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar, cast

from gatehouse.admin.activity import ActivityStore
from gatehouse.admin.conditions import ConditionMatchStore
from gatehouse.admin.names import NameStore
from gatehouse.admin.people import PeopleListStore
from gatehouse.admin.people_admin import PeopleAdmin
from gatehouse.admin.people_search import PeopleSearchStore
from gatehouse.admin.projects import ProjectListStore
from gatehouse.admin.search import SearchStore
from gatehouse.app.services import Services
from gatehouse.app.services.people import people_admin
from gatehouse.web.api.health import Readiness
from gatehouse.web.console.condition_builder import ConditionBuilders, condition_words
from gatehouse.web.console.frame import FlashMessages
from gatehouse.web.console.impact import ImpactForecaster
from gatehouse.web.console.lazy_console import SignInGate
from gatehouse.web.console.lookup import Lookup, PersonFinder
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.view import ConsoleView
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.setup import SampleCommands

T = TypeVar("T")

TEMPLATE_GLOBALS: Final[Mapping[str, object]] = {"Entry": ConsoleEntry, "condition_words": condition_words}


class ConsoleServices:
    """Nothing here may need the event loop."""

    def __init__(
        self,
        services: Services,
        *,
        sign_in_gate: SignInGate,
        readiness: Readiness,
        pages: PageRenderer,
        samples: SampleCommands,
    ) -> None:
        self.services: Final = services
        self.sign_in_gate: Final = sign_in_gate
        self.readiness: Final = readiness
        self.samples: Final = samples
        self.pages: Final = pages  # that people see
        self._shared: dict[Callable[[ConsoleServices], Any], Any] = {}

    def shared(self, build: "Callable[[ConsoleServices], T]") -> T:
        """Return what the function builds for several sections, built once."""
        if build not in self._shared:
            self._shared[build] = build(self)
        return cast("T", self._shared[build])

    @cached_property
    def view(self) -> ConsoleView:
        services = self.services
        permissions = services.permissions
        return ConsoleView(
            sign_in_gate=self.sign_in_gate,
            sessions=services.accounts.sessions,
            authenticator=permissions.authenticator,
            permission_loader=permissions.loader,
            visibility=services.admin.visibility_loader,
            pages=self.pages.with_part("console", TEMPLATE_GLOBALS),
            flash=FlashMessages(https=services.core.is_https),
            refusals=services.audit.page_refusals,
            clock=services.clock,
        )

    @cached_property
    def names(self) -> NameStore:
        return NameStore(self.services.storage.runner)

    @cached_property
    def search(self) -> SearchStore:
        return SearchStore(self.services.storage.runner)

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup(finding=self.search, people=self.people_search, view=self.view)

    @cached_property
    def people_search(self) -> PeopleSearchStore:
        return PeopleSearchStore(self.services.storage.runner)

    @cached_property
    def person_finder(self) -> PersonFinder:
        return PersonFinder(names=self.names, finding=self.search, people=self.people_search)

    @cached_property
    def people_admin(self) -> PeopleAdmin:
        return people_admin(self.services)

    @cached_property
    def condition_matches(self) -> ConditionMatchStore:
        return ConditionMatchStore(self.services.storage.runner)

    @cached_property
    def condition_builders(self) -> ConditionBuilders:
        return ConditionBuilders(matches=self.condition_matches, names=self.names)

    @cached_property
    def forecaster(self) -> ImpactForecaster:
        return ImpactForecaster(simulation=self.services.questions.simulation, names=self.names, view=self.view)

    @cached_property
    def people_lists(self) -> PeopleListStore:
        return PeopleListStore(self.services.storage.runner)

    @cached_property
    def project_lists(self) -> ProjectListStore:
        return ProjectListStore(self.services.storage.runner)

    @cached_property
    def activity_store(self) -> ActivityStore:
        return ActivityStore(self.services.storage.runner)

    def sends_mail(self) -> bool:
        return bool(self.services.settings.mail.host)
