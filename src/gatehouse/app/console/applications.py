"""The console: applications, their rules, roles, keys, clients, tables."""

from collections.abc import Sequence

from gatehouse.admin.applications import ApplicationListStore
from gatehouse.admin.clients import ClientListStore
from gatehouse.admin.roles import RoleListStore
from gatehouse.app.console.assignments import assignment_editor
from gatehouse.app.console.shared import ConsoleServices
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
from gatehouse.web.console.applications.schema_changes import SchemaReview
from gatehouse.web.console.applications.schema_versions import SchemaFileScreens, VersionScreens
from gatehouse.web.console.applications.service_tokens import ServiceTokenScreens
from gatehouse.web.console.applications.settings import ApplicationSettingScreens
from gatehouse.web.console.applications.several_rules import SeveralRulesScreens
from gatehouse.web.console.applications.sites import SiteScreens
from gatehouse.web.console.place_bans import PlaceBansContext, PlaceBanScreens, application_place
from gatehouse.web.console.view import ConsoleRoute


def build(console: ConsoleServices) -> Sequence[ConsoleRoute]:
    return [*application_screens(console), *table_screens(console)]


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
        *application_bans(console).routes(),
        *ConnectScreens(
            clients=services.admin.application_clients,
            lists=client_lists,
            view=view,
            clock=services.clock,
            base_url=services.base_url,
        ).routes(),
    ]


def application_bans(console: ConsoleServices) -> PlaceBanScreens:
    return PlaceBanScreens(
        root="/applications/{application_id:int}/bans",
        load=application_place(console.people_search, console.names),
        context=PlaceBansContext,
        bans=console.services.commands.bans,
        lists=console.people_lists,
        names=console.names,
        lookup=console.lookup,
        view=console.view,
        clock=console.services.clock,
    )


def schema_screens(console: ConsoleServices) -> list[ConsoleRoute]:
    """Rules, login rules, import and export, versions; fixed words of a path come before names."""
    schemas, review, view = console.services.commands.schemas, schema_review(console), console.view
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
    return [*matrix.routes(), *console.shared(assignment_editor).routes()]


def schema_review(console: ConsoleServices) -> SchemaReview:
    return SchemaReview(
        dry_runs=console.services.questions.dry_runs, forecaster=console.forecaster, view=console.view
    )
