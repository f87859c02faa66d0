"""The part of the composition root that is about who may do what."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final

from gatehouse.accounts.own.profile import Profile
from gatehouse.admin.clients import ApplicationClients, DraftedClients
from gatehouse.admin.games import SeenGames
from gatehouse.admin.model.people import PeopleListStore, Written
from gatehouse.admin.past_schemas import past_schema
from gatehouse.app.callers import Proofs, email_secrets, open_endpoints, proofs, service_tokens
from gatehouse.app.house import House
from gatehouse.app.people import People as SignInRooms
from gatehouse.app.questions import question_endpoints
from gatehouse.app.webhooks import webhooks
from gatehouse.audit.model import Record, Refusal
from gatehouse.permissions.callers.desk import Desk, Visit
from gatehouse.permissions.commands.access_keys import AccessKeys
from gatehouse.permissions.commands.app_schemas import AppSchemas
from gatehouse.permissions.commands.applications import Applications
from gatehouse.permissions.commands.custom_keys import CustomKeys
from gatehouse.permissions.commands.groups import Groups
from gatehouse.permissions.commands.memberships import Memberships
from gatehouse.permissions.commands.projects import Projects
from gatehouse.permissions.commands.publish import Publishing
from gatehouse.permissions.commands.service_accounts import ServiceAccounts
from gatehouse.permissions.commands.service_tokens import ManagedServiceTokens
from gatehouse.permissions.commands.user_schemas import UserSchemas
from gatehouse.permissions.commands.users import People
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.questions.roles import RoleList
from gatehouse.permissions.questions.user_schemas import Views
from gatehouse.storage.admin.games import GameListStorage
from gatehouse.storage.admin.schema_versions import SchemaVersionStorage
from gatehouse.web.health import Readiness
from gatehouse.web.permissions.access_keys import AccessKeyEndpoint
from gatehouse.web.permissions.activity import ActivityEndpoint, Find
from gatehouse.web.permissions.app_schemas import Past, SchemaEndpoints
from gatehouse.web.permissions.applications import ApplicationEndpoints
from gatehouse.web.permissions.clients import ClientEndpoint
from gatehouse.web.permissions.email_secrets import EmailSecretEndpoint
from gatehouse.web.permissions.front_desk import FrontDesk
from gatehouse.web.permissions.game_sessions import GameSessionEndpoint
from gatehouse.web.permissions.groups import GroupEndpoints
from gatehouse.web.permissions.projects import ProjectEndpoints
from gatehouse.web.permissions.public_keys import CustomKeyEndpoint
from gatehouse.web.permissions.schema_versions import SchemaVersionsEndpoint
from gatehouse.web.permissions.service_accounts import ServiceAccountEndpoint
from gatehouse.web.permissions.service_tokens import ServiceTokenEndpoint
from gatehouse.web.permissions.settings import Parts, SettingsEndpoint
from gatehouse.web.permissions.user_roles import FindWritten, UserRolesEndpoint
from gatehouse.web.permissions.user_schemas import RecordEndpoint
from gatehouse.web.permissions.user_signs import UserSignEndpoints
from gatehouse.web.permissions.users import UserEndpoints
from gatehouse.web.permissions.webhooks import WebhookEndpoint
from gatehouse.web.places import places
from gatehouse.web.routes.table import Endpoint

INSTALLATION: Final = "gatehouse.app.installation"  # comes with the first who looks
PEOPLE_LISTS: Final = "gatehouse.storage.admin.people"  # comes with the first that is asked for
SEEN_LOG: Final = "gatehouse.app.seen_log"  # comes with the first record that somebody asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRooms:
    """Built once: proofs remember."""

    proofs: Proofs
    desk: Desk
    readiness: Readiness


def permission_rooms(house: House, readiness: Readiness) -> PermissionRooms:
    known = proofs(house)
    desk = Desk(callers=known.callers, reading=house.reading, clock=house.clock)
    return PermissionRooms(proofs=known, desk=desk, readiness=readiness)


def permission_endpoints(house: House, rooms: PermissionRooms, them: SignInRooms) -> list[Endpoint]:
    """In the order of interface §4.4 to §4.10."""
    storage, recorder, clock = house.storage, house.recorder, house.clock
    desk = FrontDesk(rooms.desk)
    applications = Applications(
        store=storage.applications,
        projects=storage.projects,
        masters=house.masters,
        recorder=recorder,
        clock=clock,
        reachable=house.settings.outbound.allow,
    )
    people = People(accounts=storage.accounts, administration=house.administration, projects=storage.projects)
    user_schemas = UserSchemas(
        store=storage.user_records,
        people=storage.permissions,
        projects=storage.projects,
        recorder=recorder,
        clock=clock,
    )
    return [
        *ApplicationEndpoints(applications=applications, desk=desk).endpoints(),
        CustomKeyEndpoint(
            keys=CustomKeys(
                store=storage.application_keys, applications=storage.applications, recorder=recorder, clock=clock
            ),
            desk=desk,
        ).endpoint(),
        *open_endpoints(house, rooms.proofs),
        *UserEndpoints(people=people, desk=desk).endpoints(),
        *UserSignEndpoints(
            people=people,
            sessions=them.sessions,
            consents=them.authorizing.consents,
            profile=Profile(store=storage.profile, recorder=recorder, clock=clock),
            places=places(house.settings.accounts.geoip_file),
            desk=desk,
        ).endpoints(),
        UserRolesEndpoint(people=people, written=written(house), desk=desk).endpoint(),
        *RecordEndpoint(
            views=views(house, rooms.desk),
            schemas=user_schemas,
            desk=rooms.desk,
            clock=clock,
            max_age=house.settings.permissions.max_age_seconds,
        ).endpoints(),
        *ProjectEndpoints(
            publishing=Publishing(store=storage.projects, people=storage.permissions, recorder=recorder, clock=clock),
            projects=Projects(store=storage.projects, models=storage.permissions, recorder=recorder),
            memberships=Memberships(
                projects=storage.projects,
                records=storage.user_records,
                recorder=recorder,
                clock=clock,
            ),
            desk=desk,
        ).endpoints(),
        *GroupEndpoints(
            groups=Groups(
                store=storage.groups,
                projects=storage.projects,
                people=storage.permissions,
                recorder=recorder,
                clock=clock,
            ),
            desk=desk,
        ).endpoints(),
        AccessKeyEndpoint(
            keys=AccessKeys(
                store=storage.application_keys,
                applications=storage.applications,
                masters=house.masters,
                recorder=recorder,
                clock=clock,
            ),
            desk=desk,
        ).endpoint(),
        *SchemaEndpoints(
            schemas=AppSchemas(store=storage.applications, recorder=recorder, clock=clock),
            past=past_models(house),
            roles=RoleList(store=storage.applications, clock=clock),
            desk=desk,
        ).endpoints(),
        SchemaVersionsEndpoint(versions=SchemaVersionStorage(storage.runner), desk=desk).endpoint(),
        ServiceAccountEndpoint(accounts=service_accounts(house), desk=desk).endpoint(),
        *question_endpoints(house, rooms.desk),
        client_endpoint(house, desk),
        ServiceTokenEndpoint(tokens=managed_service_tokens(house), desk=desk).endpoint(),
        EmailSecretEndpoint(secrets=email_secrets(house), desk=desk).endpoint(),
        GameSessionEndpoint(games=seen_games(house), desk=desk).endpoint(),
        ActivityEndpoint(find=seen_records(house, rooms.desk), desk=desk).endpoint(),
        settings_endpoint(house, rooms.readiness, desk),
        WebhookEndpoint(
            webhooks=webhooks(
                house.settings,
                store=storage.webhooks,
                masters=house.masters,
                recorder=recorder,
                clock=clock,
            ),
            desk=desk,
        ).endpoint(),
    ]


def views(house: House, desk: Desk) -> Views:
    return Views(
        desk=desk,
        reading=house.reading,
        applications=house.storage.applications,
        projects=house.storage.projects,
        clock=house.clock,
    )


def client_endpoint(house: House, desk: FrontDesk) -> Endpoint:
    clients = application_clients(house)
    drafted = DraftedClients(clients=clients, clock=house.clock)
    return ClientEndpoint(clients=clients, drafted=drafted, desk=desk).endpoint()


def application_clients(house: House) -> ApplicationClients:
    return ApplicationClients(clients=house.clients, applications=house.storage.applications)


def settings_endpoint(house: House, readiness: Readiness, desk: FrontDesk) -> Endpoint:
    """Loaded with the first who asks: few ever do."""

    @cache
    def parts() -> Parts:
        loaded: Parts = import_module(INSTALLATION).setting_parts(house, readiness)
        return loaded

    return SettingsEndpoint(parts=parts, desk=desk).endpoint()


def past_models(house: House) -> Past:
    versions = SchemaVersionStorage(house.storage.runner)

    async def past(model: ApplicationModel, version: int) -> ApplicationModel:
        return (await past_schema(versions, model, version)).model

    return past


def seen_games(house: House) -> SeenGames:
    return SeenGames(sessions=GameListStorage(house.storage.runner), clock=house.clock)


def written(house: House) -> FindWritten:
    async def find(user_id: str) -> Written:
        lists: PeopleListStore = import_module(PEOPLE_LISTS).PeopleListStorage(house.storage.runner)
        return await lists.written(user_id)

    return find


def seen_records(house: House, desk: Desk) -> Find:
    async def find(visit: Visit, record_id: str) -> Record | Refusal:
        found: Record | Refusal = await import_module(SEEN_LOG).record_for(house, desk, visit, record_id)
        return found

    return find


def managed_service_tokens(house: House) -> ManagedServiceTokens:
    return ManagedServiceTokens(tokens=service_tokens(house), applications=house.storage.applications)


def service_accounts(house: House) -> ServiceAccounts:
    storage = house.storage
    return ServiceAccounts(
        store=storage.service_accounts,
        people=storage.permissions,
        projects=storage.projects,
        records=storage.user_records,
        signer=house.signer,
        recorder=house.recorder,
        clock=house.clock,
        issuer=house.settings.server.base_url,
        days=house.settings.tokens.service_jwt_days,
    )
