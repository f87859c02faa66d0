"""The part of the composition root that answers who may do what, and why."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final

from gatehouse.accounts.own_account.profile import AccountProfile
from gatehouse.admin.clients import ApplicationClients
from gatehouse.admin.games import VisibleGameSessions
from gatehouse.admin.people import DirectPermissions, PeopleListStore
from gatehouse.admin.schema_versions import schema_at_version
from gatehouse.app.services.accounts import AccountServices as SignInRooms
from gatehouse.app.services.authentication import (
    AuthenticationServices,
    authentication_services,
    email_secrets,
    public_endpoints,
    service_tokens,
)
from gatehouse.app.services.core import Services, webhooks
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest, Authenticator
from gatehouse.permissions.commands.app_schemas import SchemaCommands
from gatehouse.permissions.commands.application_credentials import (
    AccessKeyCommands,
    CustomKeyCommands,
    ServiceTokenCommands,
)
from gatehouse.permissions.commands.applications import ApplicationCommands
from gatehouse.permissions.commands.groups import GroupCommands
from gatehouse.permissions.commands.memberships import MembershipCommands
from gatehouse.permissions.commands.projects import ProjectCommands, ProjectPublisher
from gatehouse.permissions.commands.service_accounts import ServiceAccountCommands
from gatehouse.permissions.commands.user_schemas import UserRecordCommands
from gatehouse.permissions.commands.users import UserLabelCommands
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.questions.check import Checks, QuestionAccess
from gatehouse.permissions.questions.explain import Explainer, GuardedExplainer
from gatehouse.permissions.questions.members import MemberSearch
from gatehouse.permissions.questions.proposals import DryRuns
from gatehouse.permissions.questions.roles import RoleList
from gatehouse.permissions.questions.simulate import Simulation
from gatehouse.permissions.questions.user_record_views import UserRecordViews
from gatehouse.storage.admin.games import GameSessionListStorage
from gatehouse.storage.admin.schema_versions import SchemaVersionStorage
from gatehouse.web.api.health import Readiness
from gatehouse.web.api.permissions.application_keys import AccessKeyEndpoint, CustomKeyEndpoint
from gatehouse.web.api.permissions.applications import ApplicationEndpoints, ClientEndpoint
from gatehouse.web.api.permissions.authentication import RequestAuthenticator
from gatehouse.web.api.permissions.lookups import ActivityEndpoint, FindRecord, GameSessionEndpoint
from gatehouse.web.api.permissions.projects import GroupEndpoints, ProjectEndpoints
from gatehouse.web.api.permissions.questions import QuestionEndpoints, SimulationEndpoint
from gatehouse.web.api.permissions.schemas import LoadPastModel, SchemaEndpoints, SchemaVersionsEndpoint
from gatehouse.web.api.permissions.service_accounts import (
    EmailSecretEndpoint,
    ServiceAccountEndpoint,
    ServiceTokenEndpoint,
)
from gatehouse.web.api.permissions.settings import SettingsEndpoint, SettingsPartReader
from gatehouse.web.api.permissions.user_permissions import (
    FindDirectPermissions,
    UserRecordEndpoint,
    UserRolesEndpoint,
)
from gatehouse.web.api.permissions.users import UserEndpoints, UserSessionEndpoints
from gatehouse.web.api.permissions.webhooks import WebhookEndpoint
from gatehouse.web.http.geoip import open_geoip
from gatehouse.web.http.routing import Endpoint


def question_endpoints(services: Services, authenticator: Authenticator) -> list[Endpoint]:
    """check, explain, members and simulate."""
    sights = QuestionAccess(authenticator=authenticator, permission_loader=services.permission_loader)
    questions = QuestionEndpoints(
        checks=Checks(question_access=sights, permission_loader=services.permission_loader, clock=services.clock),
        explanations=GuardedExplainer(
            explainer=explainer(services),
            question_access=sights,
            authenticator=authenticator,
            permission_loader=services.permission_loader,
            projects=services.storage.projects,
        ),
        members=member_search(services),
        authenticator=authenticator,
        max_age=services.settings.permissions.max_age_seconds,
    )
    return [
        *questions.endpoints(),
        SimulationEndpoint(simulation=simulation(services), authenticator=authenticator).endpoint(),
    ]


def explainer(services: Services) -> Explainer:
    return Explainer(applications=services.storage.applications, clock=services.clock)


def member_search(services: Services) -> MemberSearch:
    return MemberSearch(
        candidate_store=services.storage.candidates, projects=services.storage.projects, clock=services.clock
    )


def simulation(services: Services) -> Simulation:
    return Simulation(dry_runs=dry_runs(services), candidate_store=services.storage.candidates, clock=services.clock)


def dry_runs(services: Services) -> DryRuns:
    storage = services.storage
    return DryRuns(
        store=storage.dry_runs,
        people=storage.permissions,
        groups=storage.groups,
        projects=storage.projects,
        recorder=services.recorder,
        clock=services.clock,
    )


# The part of the composition root that is about who may do what.


INSTALLATION_MODULE: Final = "gatehouse.app.services.installation"  # comes with the first who looks
PEOPLE_LISTS_MODULE: Final = "gatehouse.storage.admin.people"  # comes with the first that is asked for
VISIBLE_LOG_MODULE: Final = "gatehouse.app.services.visibility"  # comes with the first record that somebody asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionServices:
    """Built once: proofs remember."""

    authentication: AuthenticationServices
    authenticator: Authenticator
    readiness: Readiness


def permission_services(services: Services, readiness: Readiness) -> PermissionServices:
    known = authentication_services(services)
    desk = Authenticator(
        caller_identifier=known.callers, permission_loader=services.permission_loader, clock=services.clock
    )
    return PermissionServices(authentication=known, authenticator=desk, readiness=readiness)


def permission_endpoints(
    services: Services, permissions: PermissionServices, accounts: SignInRooms
) -> list[Endpoint]:
    """In the order of interface §4.4 to §4.10."""
    storage, recorder, clock = services.storage, services.recorder, services.clock
    desk = RequestAuthenticator(permissions.authenticator)
    applications = ApplicationCommands(
        store=storage.applications,
        projects=storage.projects,
        masters=services.masters,
        recorder=recorder,
        clock=clock,
        reachable=services.settings.outbound.allow,
    )
    people = UserLabelCommands(
        accounts=storage.accounts, administration=services.administration, projects=storage.projects
    )
    user_schemas = UserRecordCommands(
        store=storage.user_records,
        people=storage.permissions,
        projects=storage.projects,
        recorder=recorder,
        clock=clock,
    )
    return [
        *ApplicationEndpoints(applications=applications, authenticator=desk).endpoints(),
        CustomKeyEndpoint(
            keys=CustomKeyCommands(
                store=storage.application_keys, applications=storage.applications, recorder=recorder, clock=clock
            ),
            authenticator=desk,
        ).endpoint(),
        *public_endpoints(services, permissions.authentication),
        *UserEndpoints(people=people, authenticator=desk).endpoints(),
        *UserSessionEndpoints(
            people=people,
            sessions=accounts.sessions,
            consents=accounts.authorization.consents,
            profile=AccountProfile(store=storage.profile, recorder=recorder, clock=clock),
            places=open_geoip(services.settings.accounts.geoip_file),
            authenticator=desk,
        ).endpoints(),
        UserRolesEndpoint(
            people=people, find_direct_permissions=direct_assignments_reader(services), authenticator=desk
        ).endpoint(),
        *UserRecordEndpoint(
            views=record_views(services, permissions.authenticator),
            schemas=user_schemas,
            authenticator=permissions.authenticator,
            clock=clock,
            max_age=services.settings.permissions.max_age_seconds,
        ).endpoints(),
        *ProjectEndpoints(
            publishing=ProjectPublisher(
                store=storage.projects, people=storage.permissions, recorder=recorder, clock=clock
            ),
            projects=ProjectCommands(store=storage.projects, models=storage.permissions, recorder=recorder),
            memberships=MembershipCommands(
                projects=storage.projects,
                records=storage.user_records,
                recorder=recorder,
                clock=clock,
            ),
            authenticator=desk,
        ).endpoints(),
        *GroupEndpoints(
            groups=GroupCommands(
                store=storage.groups,
                projects=storage.projects,
                people=storage.permissions,
                recorder=recorder,
                clock=clock,
            ),
            authenticator=desk,
        ).endpoints(),
        AccessKeyEndpoint(
            keys=AccessKeyCommands(
                store=storage.application_keys,
                applications=storage.applications,
                masters=services.masters,
                recorder=recorder,
                clock=clock,
            ),
            authenticator=desk,
        ).endpoint(),
        *SchemaEndpoints(
            schemas=SchemaCommands(store=storage.applications, recorder=recorder, clock=clock),
            load_past_model=past_model_reader(services),
            roles=RoleList(store=storage.applications, clock=clock),
            authenticator=desk,
        ).endpoints(),
        SchemaVersionsEndpoint(versions=SchemaVersionStorage(storage.runner), authenticator=desk).endpoint(),
        ServiceAccountEndpoint(accounts=service_accounts(services), authenticator=desk).endpoint(),
        *question_endpoints(services, permissions.authenticator),
        client_endpoint(services, desk),
        ServiceTokenEndpoint(tokens=managed_service_tokens(services), authenticator=desk).endpoint(),
        EmailSecretEndpoint(secrets=email_secrets(services), authenticator=desk).endpoint(),
        GameSessionEndpoint(games=visible_games(services), authenticator=desk).endpoint(),
        ActivityEndpoint(
            find=visible_record_reader(services, permissions.authenticator), authenticator=desk
        ).endpoint(),
        settings_endpoint(services, permissions.readiness, desk),
        WebhookEndpoint(
            webhooks=webhooks(
                services.settings,
                store=storage.webhooks,
                masters=services.masters,
                recorder=recorder,
                clock=clock,
            ),
            authenticator=desk,
        ).endpoint(),
    ]


def record_views(services: Services, authenticator: Authenticator) -> UserRecordViews:
    return UserRecordViews(
        authenticator=authenticator,
        permission_loader=services.permission_loader,
        applications=services.storage.applications,
        projects=services.storage.projects,
        clock=services.clock,
    )


def client_endpoint(services: Services, authenticator: RequestAuthenticator) -> Endpoint:
    return ClientEndpoint(clients=application_clients(services), authenticator=authenticator).endpoint()


def application_clients(services: Services) -> ApplicationClients:
    return ApplicationClients(
        clients=services.clients, applications=services.storage.applications, clock=services.clock
    )


def settings_endpoint(services: Services, readiness: Readiness, authenticator: RequestAuthenticator) -> Endpoint:
    """Loaded with the first who asks: few ever do."""

    @cache
    def parts() -> SettingsPartReader:
        loaded: SettingsPartReader = import_module(INSTALLATION_MODULE).setting_parts(services, readiness)
        return loaded

    return SettingsEndpoint(parts=parts, authenticator=authenticator).endpoint()


def past_model_reader(services: Services) -> LoadPastModel:
    versions = SchemaVersionStorage(services.storage.runner)

    async def past(model: ApplicationModel, version: int) -> ApplicationModel:
        return (await schema_at_version(versions, model, version)).model

    return past


def visible_games(services: Services) -> VisibleGameSessions:
    return VisibleGameSessions(sessions=GameSessionListStorage(services.storage.runner), clock=services.clock)


def direct_assignments_reader(services: Services) -> FindDirectPermissions:
    async def find(user_id: str) -> DirectPermissions:
        lists: PeopleListStore = import_module(PEOPLE_LISTS_MODULE).PeopleListStorage(services.storage.runner)
        return await lists.direct_permissions(user_id)

    return find


def visible_record_reader(services: Services, authenticator: Authenticator) -> FindRecord:
    async def find(visit: AuthenticatedRequest, record_id: str) -> AuditRecord | Refusal:
        found: AuditRecord | Refusal = await import_module(VISIBLE_LOG_MODULE).record_for(
            services, authenticator, visit, record_id
        )
        return found

    return find


def managed_service_tokens(services: Services) -> ServiceTokenCommands:
    return ServiceTokenCommands(tokens=service_tokens(services), applications=services.storage.applications)


def service_accounts(services: Services) -> ServiceAccountCommands:
    storage = services.storage
    return ServiceAccountCommands(
        store=storage.service_accounts,
        people=storage.permissions,
        projects=storage.projects,
        records=storage.user_records,
        signer=services.signer,
        recorder=services.recorder,
        clock=services.clock,
        issuer=services.settings.server.base_url,
        days=services.settings.tokens.service_jwt_days,
    )
