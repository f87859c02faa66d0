"""What the screens of the console share, each built once."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from gatehouse.admin.activity import ActivityStore
from gatehouse.admin.assignments import AssignmentListStore
from gatehouse.admin.conditions import ConditionMatchStore
from gatehouse.admin.names import NameStore
from gatehouse.admin.people_admin import PeopleAdmin
from gatehouse.admin.people_search import PeopleSearchStore
from gatehouse.admin.projects import ProjectListStore
from gatehouse.admin.roles import RoleListStore
from gatehouse.admin.search import SearchStore
from gatehouse.app.services import Services
from gatehouse.app.services.installation import installation_admin
from gatehouse.app.services.people import people_admin
from gatehouse.web.api.health import Readiness
from gatehouse.web.api.permissions.installation import InstallationReader
from gatehouse.web.console.activity import LogVerification, RecordDescriber
from gatehouse.web.console.applications.assignment_edits import AssignmentEditor
from gatehouse.web.console.applications.assignments import AssignmentTable
from gatehouse.web.console.applications.schema_changes import SchemaReview
from gatehouse.web.console.condition_builder import ConditionBuilders, condition_words
from gatehouse.web.console.frame import FlashMessages
from gatehouse.web.console.impact import ImpactForecaster
from gatehouse.web.console.lazy_console import SignInGate
from gatehouse.web.console.lookup import Lookup, PersonFinder
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.group_access import GroupAccessScreens
from gatehouse.web.console.projects.groups import GroupLoader
from gatehouse.web.console.projects.project import ProjectLoader
from gatehouse.web.console.roles import RoleScreens
from gatehouse.web.console.view import ConsoleView
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.setup import SampleCommands

TEMPLATE_GLOBALS: Final[Mapping[str, object]] = {"Entry": ConsoleEntry, "condition_words": condition_words}


class ConsoleServices:
    """What the screens share, each built once; nothing here may need the event loop."""

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
        self.samples: Final = samples
        self._readiness = readiness
        self.pages: Final = pages  # that people see

    @cached_property
    def view(self) -> ConsoleView:
        return ConsoleView(
            sign_in_gate=self.sign_in_gate,
            sessions=self.services.accounts.sessions,
            authenticator=self.services.permissions.authenticator,
            permission_loader=self.services.permissions.loader,
            visibility=self.services.admin.visibility_loader,
            pages=self.pages.with_part("console", TEMPLATE_GLOBALS),
            flash=FlashMessages(https=self.services.core.is_https),
            refusals=self.services.audit.page_refusals,
            clock=self.services.clock,
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
    def role_lists(self) -> RoleScreens:
        return RoleScreens(
            schemas=self.services.commands.schemas,
            lists=RoleListStore(self.services.storage.runner),
            condition_builders=self.condition_builders,
            view=self.view,
            clock=self.services.clock,
        )

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
    def schema_review(self) -> SchemaReview:
        return SchemaReview(dry_runs=self.services.questions.dry_runs, forecaster=self.forecaster, view=self.view)

    @cached_property
    def project_lists(self) -> ProjectListStore:
        return ProjectListStore(self.services.storage.runner)

    @cached_property
    def project_loader(self) -> ProjectLoader:
        return ProjectLoader(projects=self.services.commands.projects, store=self.services.storage.projects)

    @cached_property
    def activity_store(self) -> ActivityStore:
        return ActivityStore(self.services.storage.runner)

    @cached_property
    def record_describer(self) -> RecordDescriber:
        return RecordDescriber(store=self.activity_store, mac_key=self.services.core.audit_key)

    @cached_property
    def log_verification(self) -> LogVerification:
        return LogVerification(
            store=self.activity_store,
            verifier=self.services.audit.continuous_verifier,
            head_codec=self.services.audit.head_codec,
        )

    @cached_property
    def people_admin(self) -> PeopleAdmin:
        return people_admin(self.services)

    @cached_property
    def assignments(self) -> AssignmentEditor:
        services, storage = self.services, self.services.storage
        people = AssignmentListStore(storage.runner)
        table = AssignmentTable(
            people=people,
            people_facts=storage.candidates,
            applications=storage.applications,
            view=self.view,
            clock=services.clock,
        )
        return AssignmentEditor(
            table=table,
            schemas=services.commands.user_records,
            simulation=services.questions.simulation,
            people=people,
            names=self.names,
            people_facts=storage.candidates,
            lookup=self.lookup,
            view=self.view,
            clock=services.clock,
        )

    @cached_property
    def group_loader(self) -> GroupLoader:
        return GroupLoader(groups=self.services.commands.groups, projects=self.services.storage.projects)

    @cached_property
    def group_access(self) -> GroupAccessScreens:
        return GroupAccessScreens(
            loader=self.group_loader,
            groups=self.services.commands.groups,
            condition_builders=self.condition_builders,
            forecaster=self.forecaster,
            view=self.view,
        )

    @cached_property
    def installation(self) -> InstallationReader:
        return installation_admin(self.services, self._readiness)
