"""The part of the composition root that is the console's entry Applications."""

from collections.abc import Sequence

from gatehouse.app.callers import email_secrets
from gatehouse.app.house import Services
from gatehouse.app.permissions import application_clients, managed_service_tokens
from gatehouse.app.questions import dry_runs, simulation
from gatehouse.permissions.commands.access_keys import AccessKeyCommands
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.commands.applications import ApplicationCommands
from gatehouse.permissions.commands.custom_keys import CustomKeyCommands
from gatehouse.storage.admin.applications import ApplicationListStorage
from gatehouse.storage.admin.clients import ClientListStorage
from gatehouse.storage.admin.nicks import NickStorage
from gatehouse.storage.admin.schema_versions import SchemaVersionStorage
from gatehouse.web.console.applications.access_keys import AccessKeyScreens
from gatehouse.web.console.applications.clients import ClientScreens
from gatehouse.web.console.applications.lists import ApplicationListScreens
from gatehouse.web.console.applications.login_rules import LoginRuleScreens
from gatehouse.web.console.applications.overview import ApplicationScreens
from gatehouse.web.console.applications.public_keys import PublicKeyScreens
from gatehouse.web.console.applications.removal import ApplicationRemovalScreens
from gatehouse.web.console.applications.reviews import SchemaReview
from gatehouse.web.console.applications.rules import RuleScreens
from gatehouse.web.console.applications.schema_files import SchemaFileScreens
from gatehouse.web.console.applications.service_tokens import ServiceTokenScreens
from gatehouse.web.console.applications.versions import VersionScreens
from gatehouse.web.console.desk import ConsoleView
from gatehouse.web.console.screens import ConsoleRoute


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
        simulation=simulation(services),
        nicks=NickStorage(services.storage.runner),
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
