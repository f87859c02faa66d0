"""The part of the composition root that is the console's entry Applications."""

from collections.abc import Sequence

from gatehouse.app.callers import email_secrets
from gatehouse.app.house import House
from gatehouse.app.permissions import application_clients, managed_service_tokens
from gatehouse.app.questions import rehearsals, simulation
from gatehouse.permissions.commands.access_keys import AccessKeys
from gatehouse.permissions.commands.app_schemas import AppSchemas
from gatehouse.permissions.commands.applications import Applications
from gatehouse.permissions.commands.custom_keys import CustomKeys
from gatehouse.storage.admin.applications import ApplicationListStorage
from gatehouse.storage.admin.clients import ClientListStorage
from gatehouse.storage.admin.nicks import NickStorage
from gatehouse.storage.admin.schema_versions import SchemaVersionStorage
from gatehouse.web.console.applications.access_keys import AccessKeyScreens
from gatehouse.web.console.applications.clients import ClientScreens
from gatehouse.web.console.applications.lists import ApplicationLists
from gatehouse.web.console.applications.login_rules import LoginRuleScreens
from gatehouse.web.console.applications.overview import OverviewScreens
from gatehouse.web.console.applications.public_keys import PublicKeyScreens
from gatehouse.web.console.applications.removal import ApplicationRemoval
from gatehouse.web.console.applications.reviews import Reviews
from gatehouse.web.console.applications.rules import RuleScreens
from gatehouse.web.console.applications.schema_files import SchemaFiles
from gatehouse.web.console.applications.service_tokens import ServiceTokenScreens
from gatehouse.web.console.applications.versions import VersionScreens
from gatehouse.web.console.desk import ConsoleDesk
from gatehouse.web.console.screens import Screen


def application_screens(house: House, desk: ConsoleDesk) -> Sequence[Screen]:
    applications = application_commands(house)
    lists = ApplicationListStorage(house.storage.runner)
    return [
        *ApplicationLists(applications=applications, lists=lists, desk=desk).screens(),
        *OverviewScreens(applications=applications, lists=lists, desk=desk).screens(),
        *ApplicationRemoval(applications=applications, lists=lists, desk=desk, clock=house.clock).screens(),
        *schema_screens(house, desk),
        *key_screens(house, desk),
        *client_screens(house, desk).screens(),
    ]


def schema_screens(house: House, desk: ConsoleDesk) -> Sequence[Screen]:
    """Rules, login rules, import and export, versions; words of a path stand before what they could be."""
    schemas = AppSchemas(store=house.storage.applications, recorder=house.recorder, clock=house.clock)
    reviews = reviews_of(house, desk)
    versions = SchemaVersionStorage(house.storage.runner)
    return [
        *LoginRuleScreens(schemas=schemas, desk=desk).screens(),
        *SchemaFiles(schemas=schemas, reviews=reviews, desk=desk).screens(),
        *RuleScreens(schemas=schemas, reviews=reviews, desk=desk).screens(),
        *VersionScreens(schemas=schemas, versions=versions, reviews=reviews, desk=desk).screens(),
    ]


def key_screens(house: House, desk: ConsoleDesk) -> Sequence[Screen]:
    storage, recorder, clock = house.storage, house.recorder, house.clock
    base_url = house.settings.server.base_url
    access_keys = AccessKeys(
        store=storage.application_keys,
        applications=storage.applications,
        masters=house.masters,
        recorder=recorder,
        clock=clock,
    )
    custom_keys = CustomKeys(
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


def client_screens(house: House, desk: ConsoleDesk) -> ClientScreens:
    return ClientScreens(
        clients=application_clients(house),
        lists=ClientListStorage(house.storage.runner),
        desk=desk,
        clock=house.clock,
        base_url=house.settings.server.base_url,
    )


def reviews_of(house: House, desk: ConsoleDesk) -> Reviews:
    return Reviews(
        rehearsals=rehearsals(house),
        simulation=simulation(house),
        nicks=NickStorage(house.storage.runner),
        desk=desk,
    )


def application_commands(house: House) -> Applications:
    return Applications(
        store=house.storage.applications,
        projects=house.storage.projects,
        masters=house.masters,
        recorder=house.recorder,
        clock=house.clock,
        reachable=house.settings.outbound.allow,
    )
