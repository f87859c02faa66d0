"""The screens of the console; loaded when it is first opened, see web/console/lazy_console.py."""

from gatehouse.admin.applications import ApplicationListStore
from gatehouse.admin.clients import ClientListStore
from gatehouse.admin.home import HomeStore
from gatehouse.admin.people import PeopleListStore
from gatehouse.admin.people_import import PeopleImport
from gatehouse.admin.risks import find_risks
from gatehouse.admin.roles import RoleListStore
from gatehouse.admin.webhooks import DeliveryListStore
from gatehouse.app.services import Services
from gatehouse.app.services.activity import visible_audit_log
from gatehouse.app.services.console_services import ConsoleServices
from gatehouse.app.services.installation import posture
from gatehouse.permissions.questions.who_can import WhoCan
from gatehouse.providers.sign_in import callback_path
from gatehouse.settings.entries import STORED_SETTINGS, TABLE_SETTINGS, setting_of_name
from gatehouse.web.api.health import Readiness
from gatehouse.web.console.access_check import CheckScreens
from gatehouse.web.console.access_simulate import SimulateScreens
from gatehouse.web.console.access_who import WhoCanScreens
from gatehouse.web.console.activity import ActivityScreens, RefusalScreens
from gatehouse.web.console.applications.apis import ApiScreens
from gatehouse.web.console.applications.clients import ClientScreens
from gatehouse.web.console.applications.connect import ConnectScreens
from gatehouse.web.console.applications.keys import AccessKeyScreens, PublicKeyScreens
from gatehouse.web.console.applications.lists import ApplicationListScreens, ApplicationRemovalScreens
from gatehouse.web.console.applications.matrix import MatrixTable
from gatehouse.web.console.applications.matrix_edits import MatrixEditor
from gatehouse.web.console.applications.new import NewApplicationScreens
from gatehouse.web.console.applications.overview import ApplicationOverviewScreens
from gatehouse.web.console.applications.roles import ApplicationRoleScreens
from gatehouse.web.console.applications.rules import LoginRuleScreens, RuleScreens
from gatehouse.web.console.applications.schema_versions import SchemaFileScreens, VersionScreens
from gatehouse.web.console.applications.service_tokens import ServiceTokenScreens
from gatehouse.web.console.applications.settings import ApplicationSettingScreens
from gatehouse.web.console.applications.several_rules import SeveralRulesScreens
from gatehouse.web.console.applications.sites import SiteScreens
from gatehouse.web.console.branding import BrandingScreens
from gatehouse.web.console.branding_preview import BrandingPreviews
from gatehouse.web.console.gallery import ComponentGallery
from gatehouse.web.console.games import GameScreens
from gatehouse.web.console.home import HomeScreens
from gatehouse.web.console.lazy_console import ConsoleHandler, SignInGate
from gatehouse.web.console.people import PeopleScreens
from gatehouse.web.console.people_import import ImportScreens
from gatehouse.web.console.people_selected import SelectedPeopleScreens
from gatehouse.web.console.person import PersonLoader, PersonScreens
from gatehouse.web.console.person_access import PersonAccessScreens
from gatehouse.web.console.person_assign import PersonAssignScreens
from gatehouse.web.console.person_bans import PersonBanScreens
from gatehouse.web.console.person_data import PersonDataScreens
from gatehouse.web.console.person_sessions import PersonSessionScreens
from gatehouse.web.console.projects.allow_lists import AllowListScreens
from gatehouse.web.console.projects.applications import ProjectApplicationScreens
from gatehouse.web.console.projects.groups import GroupListScreens, GroupScreens
from gatehouse.web.console.projects.members import MemberScreens
from gatehouse.web.console.projects.project import ProjectErasureScreens, ProjectScreens
from gatehouse.web.console.projects.service_accounts import ServiceAccountScreens
from gatehouse.web.console.projects.services import ProjectServiceScreens
from gatehouse.web.console.role_editor import RoleEditorScreens
from gatehouse.web.console.role_members import RoleMemberScreens
from gatehouse.web.console.search import GlobalSearchScreens
from gatehouse.web.console.settings import SettingScreens, SettingTabScreens, SigningKeyScreens
from gatehouse.web.console.settings_form import SettingForms, SettingRowScreens
from gatehouse.web.console.settings_tables import SETTINGS_TABLES, SettingsTableScreens
from gatehouse.web.console.view import ConsoleRoute, ConsoleRouter
from gatehouse.web.console.webhooks import WebhookScreens
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.setup import SampleCommands


def build_console(
    services: Services,
    *,
    sign_in_gate: SignInGate,
    readiness: Readiness,
    pages: PageRenderer,
    samples: SampleCommands,
) -> ConsoleHandler:
    """Runs in a thread."""
    console = ConsoleServices(services, sign_in_gate=sign_in_gate, readiness=readiness, pages=pages, samples=samples)
    screens = [
        *home_screens(console).routes(),
        *console.lookup.routes(),
        *people_screens(console),
        *project_screens(console),
        *role_screens(console),
        *search_screens(console).routes(),
        *application_screens(console),
        *table_screens(console),
        *access_screens(console),
        *game_screens(console).routes(),
        *activity_screens(console),
        *webhook_screens(console).routes(),
        *setting_screens(console),
        *(ComponentGallery(console.view).routes() if services.core.dev else ()),
    ]
    return ConsoleRouter(screens, sign_in_gate, console.view.not_found).dispatch


def home_screens(console: ConsoleServices) -> HomeScreens:
    services = console.services
    return HomeScreens(
        store=HomeStore(services.storage.runner),
        log=visible_audit_log(services),
        activity=console.activity_store,
        describer=console.record_describer,
        verification=console.log_verification,
        finding=console.search,
        view=console.view,
        clock=services.clock,
        sends_mail=lambda: bool(services.settings.mail.host),
        risks=lambda: find_risks(posture(services.settings, dev=services.core.dev)),
        samples=console.samples,
    )


def people_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    services, lists = console.services, PeopleListStore(console.services.storage.runner)
    persons = PersonLoader(people_admin=console.people_admin, lists=lists, view=console.view, clock=services.clock)
    sessions = PersonSessionScreens(
        persons,
        sessions=services.accounts.sessions,
        consents=services.oauth.consents,
        profile=services.accounts.profile,
        names=console.names,
        places=services.geoip,
        describer=console.record_describer,
    )
    access = PersonAccessScreens(
        persons,
        permission_loader=services.permissions.loader,
        views=services.questions.user_record_views,
        lookup=console.lookup,
    )
    assign = PersonAssignScreens(
        persons,
        access=access,
        assignments=console.assignments,
        group_access=console.group_access,
        groups=services.storage.groups,
        lookup=console.lookup,
    )
    selected = SelectedPeopleScreens(
        people_admin=console.people_admin,
        names=console.names,
        assignments=console.assignments,
        group_access=console.group_access,
        groups=services.storage.groups,
        lookup=console.lookup,
        view=console.view,
        clock=services.clock,
        sends_mail=lambda: bool(services.settings.mail.host),
    )
    bans = PersonBanScreens(
        persons,
        bans=services.commands.bans,
        names=console.names,
        permission_loader=services.permissions.loader,
        own_permissions=services.admin.own_permissions,
        lookup=console.lookup,
    )
    return [
        *PeopleScreens(
            people_admin=console.people_admin,
            lists=lists,
            lookup=console.lookup,
            view=console.view,
            clock=services.clock,
            sends_mail=lambda: bool(services.settings.mail.host),
            sign_in_methods=services.accounts.enabled_methods,
            base_url=services.base_url,
        ).routes(),
        *selected.routes(),
        *bans.list_routes(),
        *ImportScreens(people=PeopleImport(services.accounts.importer), view=console.view).routes(),
        *PersonScreens(
            persons,
            lookup=console.lookup,
            base_url=services.base_url,
            sends_mail=lambda: bool(services.settings.mail.host),
        ).routes(),
        *access.routes(),
        *assign.routes(),
        *sessions.routes(),
        *bans.routes(),
        *PersonDataScreens(
            persons, export=services.personal_data.export, requests=services.personal_data.requests
        ).routes(),
    ]


def project_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    services, view, loader, lists = console.services, console.view, console.project_loader, console.project_lists
    overview = ProjectScreens(
        projects=services.commands.projects,
        publishing=services.commands.publishing,
        lists=lists,
        names=console.names,
        lookup=console.lookup,
        view=view,
        clock=services.clock,
    )
    project_services = ProjectServiceScreens(
        loader=loader,
        projects=services.commands.projects,
        lists=lists,
        forecaster=console.forecaster,
        view=view,
    )
    applications = ProjectApplicationScreens(
        loader=loader, applications=services.commands.applications, lists=lists, view=view
    )
    service_accounts = ServiceAccountScreens(
        loader=loader, accounts=services.commands.service_accounts, lists=lists, view=view
    )
    return [
        *overview.routes(),
        *ProjectErasureScreens(removal=services.commands.full_removal, view=view).routes(),
        *member_screens(console),
        *applications.routes(),
        *project_services.routes(),
        *group_screens(console),
        *service_accounts.routes(),
    ]


def member_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    """The lists of groups come before people: their path could be a person's."""
    memberships = console.services.commands.memberships
    groups = AllowListScreens(
        loader=console.project_loader,
        memberships=memberships,
        forecaster=console.forecaster,
        view=console.view,
    )
    people = MemberScreens(
        loader=console.project_loader,
        memberships=memberships,
        lists=console.project_lists,
        names=console.names,
        finder=console.person_finder,
        forecaster=console.forecaster,
        view=console.view,
    )
    return [*groups.routes(), *people.routes()]


def group_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    groups, builders, view = console.services.commands.groups, console.condition_builders, console.view
    lists = GroupListScreens(loader=console.project_loader, groups=groups, condition_builders=builders, view=view)
    screens = GroupScreens(
        loader=console.group_loader,
        groups=groups,
        condition_builders=builders,
        matches=console.condition_matches,
        names=console.names,
        finder=console.person_finder,
        forecaster=console.forecaster,
        view=view,
    )
    return [*lists.routes(), *screens.routes(), *console.group_access.routes()]


def role_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    services, view, lists = console.services, console.view, console.role_lists
    editor = RoleEditorScreens(
        schemas=services.commands.schemas,
        applications=services.storage.applications,
        condition_builders=console.condition_builders,
        forecaster=console.forecaster,
        view=view,
        clock=services.clock,
    )
    members = RoleMemberScreens(search=services.questions.member_search, names=console.names, view=view)
    return [*lists.routes(), *editor.routes(), *members.routes()]


def search_screens(console: ConsoleServices) -> GlobalSearchScreens:
    return GlobalSearchScreens(finding=console.search, roles=console.role_lists, view=console.view)


def application_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    services, view, applications = console.services, console.view, console.services.commands.applications
    lists, client_lists = ApplicationListStore(services.storage.runner), ClientListStore(services.storage.runner)
    new = NewApplicationScreens(
        applications=applications,
        clients=services.admin.application_clients,
        access_keys=services.commands.access_keys,
        lookup=console.lookup,
        view=view,
        clock=services.clock,
        base_url=services.base_url,
    )
    overview = ApplicationOverviewScreens(
        clients=client_lists,
        lookup=console.lookup,
        view=view,
        clock=services.clock,
        base_url=services.base_url,
    )
    settings = ApplicationSettingScreens(
        applications=applications, lookup=console.lookup, view=view, base_url=services.base_url
    )
    roles = ApplicationRoleScreens(
        lists=RoleListStore(services.storage.runner),
        condition_builders=console.condition_builders,
        view=view,
        clock=services.clock,
    )
    clients = ClientScreens(
        clients=services.admin.application_clients,
        lists=client_lists,
        view=view,
        clock=services.clock,
        base_url=services.base_url,
    )
    return [
        *ApplicationListScreens(lists=lists, view=view).routes(),
        *new.routes(),
        *overview.routes(),
        *settings.routes(),
        *roles.routes(),
        *ApplicationRemovalScreens(applications=applications, lists=lists, view=view, clock=services.clock).routes(),
        *schema_screens(console),
        *key_screens(console),
        *ApiScreens(applications=applications, view=view, base_url=services.base_url).routes(),
        *SiteScreens(
            applications=applications,
            view=view,
            is_proxy_trusted=bool(services.settings.server.trusted_proxies),
            base_url=services.base_url,
        ).routes(),
        *clients.routes(),
        *ConnectScreens(clients=services.admin.application_clients, view=view, base_url=services.base_url).routes(),
    ]


def schema_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    """Rules, login rules, import and export, versions; fixed words of a path come before names."""
    schemas, review, view = console.services.commands.schemas, console.schema_review, console.view
    versions = console.services.admin.schema_versions
    return [
        *LoginRuleScreens(schemas=schemas, view=view).routes(),
        *SchemaFileScreens(schemas=schemas, schema_review=review, view=view).routes(),
        *SeveralRulesScreens(schemas=schemas, view=view).routes(),
        *RuleScreens(schemas=schemas, schema_review=review, view=view).routes(),
        *VersionScreens(schemas=schemas, versions=versions, schema_review=review, view=view).routes(),
    ]


def key_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    services, view = console.services, console.view
    tokens = ServiceTokenScreens(
        tokens=services.commands.service_tokens,
        email_secrets=services.commands.email_secrets,
        view=view,
        base_url=services.base_url,
        usual_days=lambda: services.settings.tokens.service_jwt_days,
    )
    return [
        *AccessKeyScreens(keys=services.commands.access_keys, view=view, base_url=services.base_url).routes(),
        *PublicKeyScreens(keys=services.commands.custom_keys, view=view, base_url=services.base_url).routes(),
        *tokens.routes(),
    ]


def table_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    """The two tables of an application whose changes are staged."""
    services, storage, view = console.services, console.services.storage, console.view
    matrix = MatrixEditor(
        table=MatrixTable(view=view),
        schemas=services.commands.schemas,
        forecaster=console.forecaster,
        names=console.names,
        audit=storage.audit,
        lookup=console.lookup,
        view=view,
    )
    return [*matrix.routes(), *console.assignments.routes()]


def access_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    services, storage, view = console.services, console.services.storage, console.view
    check = CheckScreens(
        explanations=services.questions.guarded_explainer,
        question_access=services.questions.access,
        login=services.permissions.login_rules,
        lookup=console.lookup,
        names=console.names,
        view=view,
        clock=services.clock,
    )
    who = WhoCanScreens(
        who_can=WhoCan(candidate_store=storage.candidates, clock=services.clock),
        projects=storage.projects,
        names=console.names,
        finding=console.search,
        lookup=console.lookup,
        view=view,
    )
    simulate = SimulateScreens(
        forecaster=console.forecaster,
        question_access=services.questions.access,
        groups=storage.groups,
        projects=storage.projects,
        lookup=console.lookup,
        view=view,
    )
    return [*check.routes(), *who.routes(), *simulate.routes()]


def game_screens(console: ConsoleServices) -> GameScreens:
    services = console.services
    return GameScreens(
        lists=services.admin.game_session_lists,
        audit=services.storage.audit,
        administration=services.games.administration,
        names=console.names,
        finding=console.search,
        view=console.view,
        clock=services.clock,
    )


def activity_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    services, store = console.services, console.activity_store
    log = ActivityScreens(
        log=visible_audit_log(services),
        store=store,
        describer=console.record_describer,
        lookup=console.lookup,
        view=console.view,
        verification=console.log_verification,
    )
    refusals = RefusalScreens(store=store, view=console.view)
    return [*refusals.routes(), *log.routes()]  # any path of the log may be a record's


def webhook_screens(console: ConsoleServices) -> WebhookScreens:
    lists = DeliveryListStore(console.services.storage.runner)
    return WebhookScreens(webhooks=console.services.webhooks.commands, lists=lists, view=console.view)


def setting_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    services = console.services
    installation, save, view = console.installation, services.settings_editor.save, console.view
    in_tables = (f"{table}.one.{key}" for table, rows in TABLE_SETTINGS.items() for key in rows)
    forms = SettingForms(
        installation=installation,
        save=save,
        parse=lambda name, text: setting_of_name(name).parse(text),
        settings=[*STORED_SETTINGS, *in_tables],
    )
    screens = SettingScreens(
        installation=installation,
        forms=forms,
        composer=services.mail.composer,
        outbox_worker=services.mail.outbox,
        view=view,
    )
    rows = SettingRowScreens(
        forms=forms,
        callback=lambda provider_id: f"{services.base_url}{callback_path(provider_id)}",
        view=view,
    )
    branding = BrandingScreens(forms=forms, save=save, view=view)
    previews = BrandingPreviews(
        pages=console.pages,
        composer=services.mail.composer,
        accent=lambda: services.settings.branding.accent,
        view=view,
    )
    return [
        *previews.routes(),
        *branding.routes(),
        *SigningKeyScreens(key_admin=installation.keys, view=view).routes(),
        *screens.routes(),
        *SettingTabScreens(forms=forms, view=view).routes(),
        *rows.routes(),
        *(
            route
            for table in SETTINGS_TABLES
            for route in SettingsTableScreens(table, installation=installation, save=save, view=view).routes()
        ),
    ]
