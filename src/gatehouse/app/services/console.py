"""The part of the composition root that foresees changes for the console."""

from collections.abc import Mapping, Sequence
from typing import Final

from gatehouse.accounts.administration import AccountEditor
from gatehouse.accounts.own_account.profile import AccountProfile
from gatehouse.admin.people_admin import PeopleAdmin, SignInServices
from gatehouse.admin.settings import find_risks
from gatehouse.admin.visibility import VisibilityLoader
from gatehouse.app.services.accounts import AccountServices, erasure, registration_services
from gatehouse.app.services.authentication import email_secrets
from gatehouse.app.services.core import Services, webhooks
from gatehouse.app.services.full_removal import full_removal
from gatehouse.app.services.installation import installation_admin, posture
from gatehouse.app.services.permissions import (
    PermissionServices,
    application_clients,
    dry_runs,
    explainer,
    managed_service_tokens,
    member_search,
    record_views,
    service_accounts,
    simulation,
)
from gatehouse.app.services.visibility import visible_log
from gatehouse.audit.chain import HeadCodec
from gatehouse.gamesessions.session_info import GameSessionAdmin
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.commands.application_credentials import AccessKeyCommands, CustomKeyCommands
from gatehouse.permissions.commands.applications import ApplicationCommands
from gatehouse.permissions.commands.groups import GroupCommands
from gatehouse.permissions.commands.memberships import MembershipCommands
from gatehouse.permissions.commands.projects import ProjectCommands, ProjectPublisher
from gatehouse.permissions.commands.user_schemas import UserRecordCommands
from gatehouse.permissions.questions.check import QuestionAccess
from gatehouse.permissions.questions.explain import GuardedExplainer
from gatehouse.permissions.questions.who_can import WhoCan
from gatehouse.storage.admin.activity import ActivityStorage
from gatehouse.storage.admin.applications import ApplicationListStorage
from gatehouse.storage.admin.assignments import AssignmentListStorage
from gatehouse.storage.admin.clients import ClientListStorage
from gatehouse.storage.admin.conditions import ConditionMatchStorage
from gatehouse.storage.admin.games import GameSessionListStorage
from gatehouse.storage.admin.home import HomeStorage
from gatehouse.storage.admin.names import NameStorage
from gatehouse.storage.admin.people import PeopleListStorage
from gatehouse.storage.admin.projects import ProjectListStorage
from gatehouse.storage.admin.roles import RoleListStorage
from gatehouse.storage.admin.schema_versions import SchemaVersionStorage
from gatehouse.storage.admin.search import SearchStorage
from gatehouse.storage.admin.visibility import VisibilityStorage
from gatehouse.storage.admin.webhooks import DeliveryListStorage
from gatehouse.web.api.health import Readiness
from gatehouse.web.console.access_check import CheckScreens
from gatehouse.web.console.access_simulate import SimulateScreens
from gatehouse.web.console.access_who import WhoCanScreens
from gatehouse.web.console.activity import ActivityScreens, RefusalScreens
from gatehouse.web.console.applications.assignment_edits import AssignmentEditor
from gatehouse.web.console.applications.assignments import AssignmentTable
from gatehouse.web.console.applications.clients import ClientScreens
from gatehouse.web.console.applications.keys import AccessKeyScreens, PublicKeyScreens
from gatehouse.web.console.applications.lists import ApplicationListScreens, ApplicationRemovalScreens
from gatehouse.web.console.applications.matrix import MatrixTable
from gatehouse.web.console.applications.matrix_edits import MatrixEditor
from gatehouse.web.console.applications.overview import ApplicationScreens
from gatehouse.web.console.applications.rules import LoginRuleScreens, RuleScreens
from gatehouse.web.console.applications.schema_changes import SchemaReview
from gatehouse.web.console.applications.schema_versions import SchemaFileScreens, VersionScreens
from gatehouse.web.console.applications.service_tokens import ServiceTokenScreens
from gatehouse.web.console.condition_builder import ConditionBuilders, condition_words
from gatehouse.web.console.frame import FlashMessages
from gatehouse.web.console.games import GameScreens
from gatehouse.web.console.home import HomeScreens
from gatehouse.web.console.impact import ImpactForecaster
from gatehouse.web.console.lazy_console import ConsoleHandler, SignInGate
from gatehouse.web.console.lookup import Suggestions
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.people import PeopleScreens
from gatehouse.web.console.person import PersonLoader, PersonScreens
from gatehouse.web.console.person_access import PersonAccessScreens
from gatehouse.web.console.person_sessions import PersonSessionScreens
from gatehouse.web.console.projects.allow_lists import AllowListScreens
from gatehouse.web.console.projects.applications import ProjectApplicationScreens
from gatehouse.web.console.projects.group_access import GroupAccessScreens
from gatehouse.web.console.projects.groups import GroupListScreens, GroupLoader, GroupScreens
from gatehouse.web.console.projects.members import MemberScreens
from gatehouse.web.console.projects.project import ProjectErasureScreens, ProjectLoader, ProjectScreens
from gatehouse.web.console.projects.service_accounts import ServiceAccountScreens
from gatehouse.web.console.projects.services import ProjectServiceScreens
from gatehouse.web.console.role_editor import RoleEditorScreens
from gatehouse.web.console.role_members import RoleMemberScreens
from gatehouse.web.console.roles import RoleScreens
from gatehouse.web.console.settings import SettingScreens, SigningKeyScreens
from gatehouse.web.console.view import ConsoleRoute, ConsoleRouter, ConsoleView
from gatehouse.web.console.webhooks import WebhookScreens
from gatehouse.web.http.geoip import open_geoip
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.setup import SampleCommands


def impact_forecast(services: Services, view: ConsoleView) -> ImpactForecaster:
    return ImpactForecaster(simulation=simulation(services), names=NameStorage(services.storage.runner), view=view)


# The part of the composition root that is the console's roles.


def role_screens(services: Services, view: ConsoleView) -> list[ConsoleRoute]:
    storage, clock = services.storage, services.clock
    schemas = SchemaCommands(store=storage.applications, recorder=services.recorder, clock=clock)
    built = conditions(services)
    lists = RoleScreens(
        schemas=schemas, lists=RoleListStorage(storage.runner), condition_builders=built, view=view, clock=clock
    )
    editor = RoleEditorScreens(
        schemas=schemas,
        applications=storage.applications,
        condition_builders=built,
        forecaster=impact_forecast(services, view),
        view=view,
        clock=clock,
    )
    members = RoleMemberScreens(search=member_search(services), names=NameStorage(storage.runner), view=view)
    return [*lists.routes(), *editor.routes(), *members.routes()]


def conditions(services: Services) -> ConditionBuilders:
    runner = services.storage.runner
    return ConditionBuilders(matches=ConditionMatchStorage(runner), names=NameStorage(runner))


# The part of the composition root that is the console's entry Applications.


def application_screens(services: Services, view: ConsoleView) -> Sequence[ConsoleRoute]:
    applications = application_commands(services)
    lists = ApplicationListStorage(services.storage.runner)
    return [
        *ApplicationListScreens(applications=applications, lists=lists, view=view).routes(),
        *ApplicationScreens(applications=applications, lists=lists, view=view).routes(),
        *ApplicationRemovalScreens(applications=applications, lists=lists, view=view, clock=services.clock).routes(),
        *schema_screens(services, view),
        *key_screens(services, view),
        *client_screens(services, view).routes(),
    ]


def schema_screens(services: Services, view: ConsoleView) -> Sequence[ConsoleRoute]:
    """Rules, login rules, import and export, versions; words of a path stand before what they could be."""
    schemas = SchemaCommands(store=services.storage.applications, recorder=services.recorder, clock=services.clock)
    reviews = schema_reviews(services, view)
    versions = SchemaVersionStorage(services.storage.runner)
    return [
        *LoginRuleScreens(schemas=schemas, view=view).routes(),
        *SchemaFileScreens(schemas=schemas, schema_review=reviews, view=view).routes(),
        *RuleScreens(schemas=schemas, schema_review=reviews, view=view).routes(),
        *VersionScreens(schemas=schemas, versions=versions, schema_review=reviews, view=view).routes(),
    ]


def key_screens(services: Services, view: ConsoleView) -> Sequence[ConsoleRoute]:
    storage, recorder, clock = services.storage, services.recorder, services.clock
    base_url = services.settings.server.base_url
    access_keys = AccessKeyCommands(
        store=storage.application_keys,
        applications=storage.applications,
        masters=services.masters,
        recorder=recorder,
        clock=clock,
    )
    custom_keys = CustomKeyCommands(
        store=storage.application_keys, applications=storage.applications, recorder=recorder, clock=clock
    )
    tokens = ServiceTokenScreens(
        tokens=managed_service_tokens(services),
        email_secrets=email_secrets(services),
        view=view,
        base_url=base_url,
        usual_days=services.settings.tokens.service_jwt_days,
    )
    return [
        *AccessKeyScreens(keys=access_keys, view=view, base_url=base_url).routes(),
        *PublicKeyScreens(keys=custom_keys, view=view, base_url=base_url).routes(),
        *tokens.routes(),
    ]


def client_screens(services: Services, view: ConsoleView) -> ClientScreens:
    return ClientScreens(
        clients=application_clients(services),
        lists=ClientListStorage(services.storage.runner),
        view=view,
        clock=services.clock,
        base_url=services.settings.server.base_url,
    )


def schema_reviews(services: Services, view: ConsoleView) -> SchemaReview:
    return SchemaReview(
        dry_runs=dry_runs(services),
        forecaster=impact_forecast(services, view),
        view=view,
    )


def application_commands(services: Services) -> ApplicationCommands:
    return ApplicationCommands(
        store=services.storage.applications,
        projects=services.storage.projects,
        masters=services.masters,
        recorder=services.recorder,
        clock=services.clock,
        reachable=services.settings.outbound.allow,
    )


# The part of the composition root that is the console's two staged tables of an application.


def table_screens(services: Services, view: ConsoleView) -> Sequence[ConsoleRoute]:
    storage = services.storage
    people, names = AssignmentListStorage(storage.runner), NameStorage(storage.runner)
    matrix = MatrixEditor(
        table=MatrixTable(view=view),
        schemas=SchemaCommands(store=storage.applications, recorder=services.recorder, clock=services.clock),
        forecaster=impact_forecast(services, view),
        names=names,
        audit=storage.audit,
        view=view,
    )
    users = AssignmentEditor(
        table=AssignmentTable(
            people=people,
            people_facts=storage.candidates,
            applications=storage.applications,
            view=view,
            clock=services.clock,
        ),
        schemas=UserRecordCommands(
            store=storage.user_records,
            people=storage.permissions,
            projects=storage.projects,
            recorder=services.recorder,
            clock=services.clock,
        ),
        simulation=simulation(services),
        people=people,
        names=names,
        people_facts=storage.candidates,
        view=view,
        clock=services.clock,
    )
    return [*matrix.routes(), *users.routes()]


# The part of the console that is about who may do what, and why, and what happened.


def access_screens(
    services: Services, view: ConsoleView, accounts: AccountServices, permissions: PermissionServices
) -> list[ConsoleRoute]:
    storage, clock = services.storage, services.clock
    names, finding = NameStorage(storage.runner), SearchStorage(storage.runner)
    sights = QuestionAccess(authenticator=permissions.authenticator, permission_loader=services.permission_loader)
    choosing = Suggestions(finding)
    check = CheckScreens(
        explanations=GuardedExplainer(
            explainer=explainer(services),
            question_access=sights,
            authenticator=permissions.authenticator,
            permission_loader=services.permission_loader,
            projects=storage.projects,
        ),
        question_access=sights,
        login=accounts.games.login_rules,
        suggestions=choosing,
        names=names,
        view=view,
        clock=clock,
    )
    who = WhoCanScreens(
        who_can=WhoCan(candidate_store=storage.candidates, clock=clock),
        projects=storage.projects,
        names=names,
        finding=finding,
        suggestions=choosing,
        view=view,
    )
    simulate = SimulateScreens(
        forecaster=ImpactForecaster(simulation=simulation(services), names=names, view=view),
        question_access=sights,
        groups=storage.groups,
        projects=storage.projects,
        suggestions=choosing,
        view=view,
    )
    return [*check.routes(), *who.routes(), *simulate.routes()]


def game_screens(services: Services, view: ConsoleView, accounts: AccountServices) -> GameScreens:
    storage = services.storage
    return GameScreens(
        lists=GameSessionListStorage(storage.runner),
        audit=storage.audit,
        administration=GameSessionAdmin(
            store=storage.game_sessions,
            refusals=accounts.games.records,
            recorder=services.recorder,
            clock=services.clock,
        ),
        names=NameStorage(storage.runner),
        finding=SearchStorage(storage.runner),
        view=view,
        clock=services.clock,
    )


def activity_screens(services: Services, view: ConsoleView, permissions: PermissionServices) -> list[ConsoleRoute]:
    storage = services.storage
    store = ActivityStorage(storage.runner)
    log = ActivityScreens(
        log=visible_log(services, permissions.authenticator),
        store=store,
        names=NameStorage(storage.runner),
        finding=SearchStorage(storage.runner),
        view=view,
        mac_key=services.audit_key,
        box=HeadCodec(services.masters),
    )
    refusals = RefusalScreens(store=store, view=view)
    return [*refusals.routes(), *log.routes()]  # an address of the log may be any record's


# The part of the composition root that is the console's projects and their tabs.


def project_screens(services: Services, view: ConsoleView) -> list[ConsoleRoute]:
    storage = services.storage
    projects = ProjectCommands(store=storage.projects, models=storage.permissions, recorder=services.recorder)
    lists = ProjectListStorage(storage.runner)
    overview = ProjectScreens(
        projects=projects,
        publishing=ProjectPublisher(
            store=storage.projects, people=storage.permissions, recorder=services.recorder, clock=services.clock
        ),
        lists=lists,
        names=NameStorage(storage.runner),
        view=view,
        clock=services.clock,
    )
    door = ProjectLoader(projects=projects, store=storage.projects)
    service_screens = ProjectServiceScreens(
        loader=door, projects=projects, lists=lists, forecaster=impact_forecast(services, view), view=view
    )
    applications = ProjectApplicationScreens(
        loader=door, applications=project_application_commands(services), lists=lists, view=view
    )
    accounts = ServiceAccountScreens(loader=door, accounts=service_accounts(services), lists=lists, view=view)
    erasure = ProjectErasureScreens(removal=full_removal(services), view=view)
    return [
        *overview.routes(),
        *erasure.routes(),
        *member_screens(services, view, door, lists),
        *applications.routes(),
        *service_screens.routes(),
        *group_screens(services, view, door),
        *accounts.routes(),
    ]


def member_screens(
    services: Services, view: ConsoleView, door: ProjectLoader, lists: ProjectListStorage
) -> list[ConsoleRoute]:
    """The lists of groups stand before people: their path could be somebody's."""
    storage = services.storage
    memberships = MembershipCommands(
        projects=storage.projects,
        records=storage.user_records,
        recorder=services.recorder,
        clock=services.clock,
    )
    ahead = impact_forecast(services, view)
    groups = AllowListScreens(loader=door, memberships=memberships, forecaster=ahead, view=view)
    people = MemberScreens(
        loader=door,
        memberships=memberships,
        lists=lists,
        names=NameStorage(storage.runner),
        forecaster=ahead,
        view=view,
    )
    return [*groups.routes(), *people.routes()]


def group_screens(services: Services, view: ConsoleView, door: ProjectLoader) -> list[ConsoleRoute]:
    storage, runner = services.storage, services.storage.runner
    groups = GroupCommands(
        store=storage.groups,
        projects=storage.projects,
        people=storage.permissions,
        recorder=services.recorder,
        clock=services.clock,
    )
    built, ahead = conditions(services), impact_forecast(services, view)
    one = GroupLoader(groups=groups, projects=storage.projects)
    listed = GroupListScreens(loader=door, groups=groups, condition_builders=built, view=view)
    pages = GroupScreens(
        loader=one,
        groups=groups,
        condition_builders=built,
        matches=ConditionMatchStorage(runner),
        names=NameStorage(runner),
        forecaster=ahead,
        view=view,
    )
    access = GroupAccessScreens(loader=one, groups=groups, condition_builders=built, forecaster=ahead, view=view)
    return [*listed.routes(), *pages.routes(), *access.routes()]


def project_application_commands(services: Services) -> ApplicationCommands:
    return ApplicationCommands(
        store=services.storage.applications,
        projects=services.storage.projects,
        masters=services.masters,
        recorder=services.recorder,
        clock=services.clock,
        reachable=services.settings.outbound.allow,
    )


# People in the console, composed.


def people_screens(
    services: Services, accounts: AccountServices, view: ConsoleView, permissions: PermissionServices
) -> list[ConsoleRoute]:
    office, lists = people_admin(services, accounts), PeopleListStorage(services.storage.runner)
    persons = PersonLoader(people_admin=office, lists=lists, view=view, clock=services.clock)
    profile = AccountProfile(store=services.storage.profile, recorder=services.recorder, clock=services.clock)
    signs = PersonSessionScreens(
        persons,
        sessions=accounts.sessions,
        consents=accounts.authorization.consents,
        profile=profile,
        names=NameStorage(services.storage.runner),
        places=open_geoip(services.settings.accounts.geoip_file),
    )
    return [
        *PeopleScreens(people_admin=office, lists=lists, view=view, clock=services.clock).routes(),
        *PersonScreens(persons).routes(),
        *PersonAccessScreens(
            persons,
            permission_loader=services.permission_loader,
            views=record_views(services, permissions.authenticator),
        ).routes(),
        *signs.routes(),
    ]


def people_admin(services: Services, accounts: AccountServices) -> PeopleAdmin:
    storage, recorder, ways_in = services.storage, services.recorder, registration_services(services)
    return PeopleAdmin(
        accounts=storage.accounts,
        administration=services.administration,
        editing=AccountEditor(store=storage.profile, composer=accounts.composer, recorder=recorder),
        invitations=ways_in.invitations,
        recovery=ways_in.recovery,
        erasure=erasure(services),
        consents=accounts.authorization.consents,
        schemas=UserRecordCommands(
            store=storage.user_records,
            people=storage.permissions,
            projects=storage.projects,
            recorder=recorder,
            clock=services.clock,
        ),
        sign_in=SignInServices(
            sessions=accounts.sessions,
            factors=accounts.second_factors,
            totp=accounts.totp,
            passkeys=accounts.passkeys,
            email_codes=accounts.email_codes,
        ),
    )


# Settings in the console, composed.


def setting_screens(
    services: Services, accounts: AccountServices, view: ConsoleView, readiness: Readiness
) -> list[ConsoleRoute]:
    installation = installation_admin(services, readiness)
    screens = SettingScreens(
        installation=installation, composer=accounts.composer, outbox_worker=services.outbox_worker, view=view
    )
    return [*SigningKeyScreens(key_admin=installation.keys, view=view).routes(), *screens.routes()]


# The part of the composition root that is the console; loaded with its first visitor (web/console/lazy_console.py).


TEMPLATE_GLOBALS: Final[Mapping[str, object]] = {"Entry": ConsoleEntry, "condition_words": condition_words}


def console(
    services: Services,
    accounts: AccountServices,
    *,
    threshold: SignInGate,
    rooms: PermissionServices,
    pages: PageRenderer,
    samples: SampleCommands,
) -> ConsoleHandler:
    """Built in a thread: nothing here may need the event loop."""
    https = services.settings.server.base_url.startswith("https:")
    desk = ConsoleView(
        sign_in_gate=threshold,
        sessions=accounts.sessions,
        authenticator=rooms.authenticator,
        permission_loader=services.permission_loader,
        visibility=VisibilityLoader(VisibilityStorage(services.storage.runner)),
        pages=pages.with_part("console", TEMPLATE_GLOBALS),
        flash=FlashMessages(https=https),
        clock=services.clock,
    )
    screens = [
        *home_screens(services, desk, samples).routes(),
        *people_screens(services, accounts, desk, rooms),
        *project_screens(services, desk),
        *role_screens(services, desk),
        *application_screens(services, desk),
        *table_screens(services, desk),
        *access_screens(services, desk, accounts, rooms),
        *game_screens(services, desk, accounts).routes(),
        *activity_screens(services, desk, rooms),
        *webhook_screens(services, desk).routes(),
        *setting_screens(services, accounts, desk, rooms.readiness),
    ]
    return ConsoleRouter(screens, threshold, desk.not_found).dispatch


def home_screens(services: Services, view: ConsoleView, samples: SampleCommands) -> HomeScreens:
    return HomeScreens(
        store=HomeStorage(services.storage.runner),
        tallies=services.storage.tallies,
        view=view,
        clock=services.clock,
        sends_mail=bool(services.settings.mail.host),
        risks=find_risks(posture(services.settings, dev=services.dev)),
        samples=samples,
    )


def webhook_screens(services: Services, view: ConsoleView) -> WebhookScreens:
    return WebhookScreens(
        webhooks=webhooks(
            services.settings,
            store=services.storage.webhooks,
            masters=services.masters,
            recorder=services.recorder,
            clock=services.clock,
        ),
        lists=DeliveryListStorage(services.storage.runner),
        view=view,
    )
