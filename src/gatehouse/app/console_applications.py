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


def application_screens(house: Services, desk: ConsoleView) -> Sequence[ConsoleRoute]:
    applications = application_commands(house)
    lists = ApplicationListStorage(house.storage.runner)
    return [
        *ApplicationListScreens(applications=applications, lists=lists, desk=desk).screens(),
        *ApplicationScreens(applications=applications, lists=lists, desk=desk).screens(),
        *ApplicationRemovalScreens(applications=applications, lists=lists, desk=desk, clock=house.clock).screens(),
        *schema_screens(house, desk),
        *key_screens(house, desk),
        *client_screens(house, desk).screens(),
    ]


def schema_screens(house: Services, desk: ConsoleView) -> Sequence[ConsoleRoute]:
    """Rules, login rules, import and export, versions; words of a path stand before what they could be."""
    schemas = SchemaCommands(store=house.storage.applications, recorder=house.recorder, clock=house.clock)
    reviews = schema_reviews(house, desk)
    versions = SchemaVersionStorage(house.storage.runner)
    return [
        *LoginRuleScreens(schemas=schemas, desk=desk).screens(),
        *SchemaFileScreens(schemas=schemas, reviews=reviews, desk=desk).screens(),
        *RuleScreens(schemas=schemas, reviews=reviews, desk=desk).screens(),
        *VersionScreens(schemas=schemas, versions=versions, reviews=reviews, desk=desk).screens(),
    ]


def key_screens(house: Services, desk: ConsoleView) -> Sequence[ConsoleRoute]:
    storage, recorder, clock = house.storage, house.recorder, house.clock
    base_url = house.settings.server.base_url
    access_keys = AccessKeyCommands(
        store=storage.application_keys,
        applications=storage.applications,
        masters=house.masters,
        recorder=recorder,
        clock=clock,
    )
    custom_keys = CustomKeyCommands(
        store=storage.application_keys, applications=storage.applications, recorder=recorder, clock=clock
    )
    tokens = ServiceTokenScreens(
        tokens=managed_service_tokens(house),
        email_secrets=email_secrets(house),
        desk=desk,
        base_url=base_url,
        usual_days=house.settings.tokens.service_jwt_days,
    )
    return [
        *AccessKeyScreens(keys=access_keys, desk=desk, base_url=base_url).screens(),
        *PublicKeyScreens(keys=custom_keys, desk=desk, base_url=base_url).screens(),
        *tokens.screens(),
    ]


def client_screens(house: Services, desk: ConsoleView) -> ClientScreens:
    return ClientScreens(
        clients=application_clients(house),
        lists=ClientListStorage(house.storage.runner),
        desk=desk,
        clock=house.clock,
        base_url=house.settings.server.base_url,
    )


def schema_reviews(house: Services, desk: ConsoleView) -> SchemaReview:
    return SchemaReview(
        rehearsals=dry_runs(house),
        simulation=simulation(house),
        nicks=NickStorage(house.storage.runner),
        desk=desk,
    )


def application_commands(house: Services) -> ApplicationCommands:
    return ApplicationCommands(
        store=house.storage.applications,
        projects=house.storage.projects,
        masters=house.masters,
        recorder=house.recorder,
        clock=house.clock,
        reachable=house.settings.outbound.allow,
    )
