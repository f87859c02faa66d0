"""The endpoints of the API, in the order of the interface document."""

from functools import cache

from gatehouse.admin.bulk_invitations import BulkInvitations
from gatehouse.admin.people import DirectPermissions
from gatehouse.admin.people_import import PeopleImport
from gatehouse.admin.schema_versions import schema_at_version
from gatehouse.app.management import add_management
from gatehouse.app.services import Services
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.keys.jwks import KeySetPublisher
from gatehouse.languages import LANGUAGES
from gatehouse.oauth.discovery import provider_metadata
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.web.api.access_requests import AccessRequestEndpoints
from gatehouse.web.api.discovery import DiscoveryEndpoints
from gatehouse.web.api.game_proof import AccessKeySignatureVerifier
from gatehouse.web.api.games import GameSessionEndpoints
from gatehouse.web.api.guest import GuestEndpoint
from gatehouse.web.api.health import Readiness
from gatehouse.web.api.keys import KeySetEndpoints
from gatehouse.web.api.login import LoginEndpoint
from gatehouse.web.api.login_completion import LoginCompletion
from gatehouse.web.api.oauth.authorize import AuthorizeEndpoint, ClientErrorPage
from gatehouse.web.api.oauth.device import DeviceAuthorizationEndpoint, DevicePages
from gatehouse.web.api.oauth.exchange import ExchangeEndpoints
from gatehouse.web.api.oauth.introspection import IntrospectionEndpoint
from gatehouse.web.api.oauth.logout import LogoutEndpoints
from gatehouse.web.api.oauth.par import PushedRequestEndpoint
from gatehouse.web.api.oauth.revocation import RevocationEndpoints
from gatehouse.web.api.oauth.tokens import TokenHttpEndpoint
from gatehouse.web.api.oauth.userinfo import UserInfoEndpoint
from gatehouse.web.api.permissions.access_keys import AccessKeyEndpoint
from gatehouse.web.api.permissions.application_keys import CustomKeyEndpoint, PublicKeyEndpoints
from gatehouse.web.api.permissions.applications import ApplicationEndpoints
from gatehouse.web.api.permissions.bans import BanEndpoint
from gatehouse.web.api.permissions.changes import ChangesEndpoint
from gatehouse.web.api.permissions.clients import ClientEndpoint
from gatehouse.web.api.permissions.email_secrets import EmailSecretEndpoint
from gatehouse.web.api.permissions.exchange_jwt import ExchangeJwtEndpoint
from gatehouse.web.api.permissions.game_sessions import GameSessionEndpoint
from gatehouse.web.api.permissions.groups import GroupEndpoints
from gatehouse.web.api.permissions.listing import Cursors
from gatehouse.web.api.permissions.lookups import ActivityEndpoint, FindRecord
from gatehouse.web.api.permissions.objects import ObjectEndpoints
from gatehouse.web.api.permissions.projects import ProjectEndpoints
from gatehouse.web.api.permissions.questions import QuestionEndpoints
from gatehouse.web.api.permissions.schema_versions import SchemaVersionsEndpoint
from gatehouse.web.api.permissions.schemas import LoadPastModel, SchemaEndpoints
from gatehouse.web.api.permissions.service_accounts import ServiceAccountEndpoint
from gatehouse.web.api.permissions.service_tokens import ServiceTokenEndpoint
from gatehouse.web.api.permissions.settings import SettingsEndpoint, SettingsPartReader
from gatehouse.web.api.permissions.simulate import SimulationEndpoint
from gatehouse.web.api.permissions.user_admin import UserAdminEndpoint, UserAdminServices
from gatehouse.web.api.permissions.user_import import UserImportEndpoint
from gatehouse.web.api.permissions.user_permissions import UserRecordEndpoint
from gatehouse.web.api.permissions.user_roles import FindDirectPermissions, UserRolesEndpoint
from gatehouse.web.api.permissions.user_sessions import UserSessionEndpoints
from gatehouse.web.api.permissions.users import UserEndpoints
from gatehouse.web.api.permissions.webhooks import WebhookEndpoint
from gatehouse.web.api.platform_login import PlatformLoginEndpoint
from gatehouse.web.forward_auth.authentication import ForwardAuthEndpoint
from gatehouse.web.forward_auth.cookies import SiteCookies
from gatehouse.web.forward_auth.denied_page import SiteDeniedPage
from gatehouse.web.forward_auth.sign_in import SiteSignInPages
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.access_denied import AccessDeniedPage
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.server.server import ShutdownSignal


def key_set_endpoints(services: Services) -> list[Endpoint]:
    """Interface §4.2 and §4.4: the service's public keys."""
    return KeySetEndpoints(KeySetPublisher(keyring=services.keys.keyring, clock=services.clock)).endpoints()


def oauth_endpoints(services: Services, pages: PageRenderer) -> list[Endpoint]:
    """Interface §4.2, then what R3 adds to it; the pages that authorize leads to are in page_endpoints.py."""
    denied_page = AccessDeniedPage(reasons=services.oauth.denial_reasons, owners=services.oauth.owners, pages=pages)
    authorize = AuthorizeEndpoint(
        authorize=services.oauth.authorize,
        sign_in_flows=services.sign_in_flows,
        browsers=services.accounts.browsers,
        error_page=ClientErrorPage(
            rules=services.permissions.login_rules, pages=pages, refusals=services.audit.page_refusals
        ),
        denied_page=denied_page,
        rate_limiter=services.limits.requests,
        pages=pages,
    )
    exchange = ExchangeEndpoints(
        id_tokens=services.oauth.tokens.id_token_exchange, user_jwts=services.oauth.tokens.user_jwt_exchange
    )
    logout = LogoutEndpoints(
        logouts=services.oauth.logout_requests,
        sessions=services.accounts.sessions,
        browsers=services.accounts.browsers,
        pages=pages,
        refusals=services.audit.page_refusals,
    )
    return [
        *DiscoveryEndpoints(
            lambda: provider_metadata(
                services.base_url,
                languages=LANGUAGES,
                documents=bool(services.settings.oauth.client_document_hosts),
            )
        ).endpoints(),
        *authorize.endpoints(),
        PushedRequestEndpoint(
            authentication=services.oauth.clients.authenticator,
            authorize=services.oauth.authorize,
            pushed_requests=services.oauth.authorize.pushed_requests,
        ).endpoint(),
        TokenHttpEndpoint(services.oauth.token_endpoint).endpoint(),
        UserInfoEndpoint(services.oauth.userinfo).endpoint(),
        *RevocationEndpoints(services.oauth.revocation).endpoints(),
        *exchange.endpoints(),
        IntrospectionEndpoint(services.oauth.introspection).endpoint(),
        *device_endpoints(services, denied_page, pages),
        *logout.endpoints(),
    ]


def device_endpoints(services: Services, denied_page: AccessDeniedPage, pages: PageRenderer) -> list[Endpoint]:
    authorization = DeviceAuthorizationEndpoint(
        authentication=services.oauth.clients.authenticator,
        device_authorization=services.oauth.device_authorization,
        rate_limiter=services.limits.requests,
        base_url=services.base_url,
    )
    device_pages = DevicePages(
        device_authorization=services.oauth.device_authorization,
        clients=services.storage.clients,
        sign_in_flows=services.sign_in_flows,
        browsers=services.accounts.browsers,
        denied_page=denied_page,
        pages=pages,
    )
    return [authorization.endpoint(), *device_pages.endpoints()]


def site_endpoints(services: Services, pages: PageRenderer) -> list[Endpoint]:
    """Forward auth (R9): what a reverse proxy asks, and the sign-in to the sites behind it."""
    cookies = SiteCookies()
    denied_page = SiteDeniedPage(pages=pages, base_url=services.base_url)
    forward_auth = ForwardAuthEndpoint(
        authentication=services.sites.authentication,
        cookies=cookies,
        denied_page=denied_page,
        failures=services.core.failed_sign_ins,
    )
    site_pages = SiteSignInPages(
        site_sign_in=services.sites.sign_in,
        cookies=cookies,
        sign_in_flows=services.sign_in_flows,
        browsers=services.accounts.browsers,
        owners=services.oauth.owners,
        denied_page=denied_page,
        pages=pages,
        rate_limiter=services.limits.requests,
        base_url=services.base_url,
    )
    return [forward_auth.endpoint(), *site_pages.endpoints()]


def game_endpoints(services: Services, stopping: ShutdownSignal) -> list[Endpoint]:
    """Interface §4.3: game sessions."""
    stopping.when_begun(services.games.waiters.stop)
    return GameSessionEndpoints(
        registration=services.games.registration,
        polls=services.games.polls,
        game_sessions=services.games.sessions,
        guests=services.sign_in.guests,
        keys=AccessKeySignatureVerifier(services.permissions.access_keys),
        records=services.games.refusals,
        clock=services.clock,
        base_url=services.base_url,
    ).endpoints()


def login_endpoints(services: Services, pages: PageRenderer) -> list[Endpoint]:
    """Interface §4.11: the ordinary login operation; R10: with a ticket of a platform, and of guests."""
    completion = LoginCompletion(
        accounts=services.storage.accounts,
        factors=services.factors.second_factors,
        email_codes=services.factors.email_codes,
        phone_codes=services.factors.phone_codes,
        sign_in_flows=services.sign_in_flows,
        login_result=services.sign_in.login_result,
        masters=services.core.masters,
        failures=services.core.failed_sign_ins,
    )
    return [
        LoginEndpoint(sign_in=services.sign_in.passwords, completion=completion).endpoint(),
        PlatformLoginEndpoint(sign_in=services.sign_in.platforms, completion=completion, pages=pages).endpoint(),
        GuestEndpoint(
            guests=services.sign_in.guests,
            login_result=services.sign_in.login_result,
            completion=completion,
            pages=pages,
        ).endpoint(),
    ]


def permission_endpoints(services: Services, readiness: Readiness, stopping: ShutdownSignal) -> list[Endpoint]:
    """Interface §4.4 to §4.10, §4.14; management adds lists and Idempotency-Key to some of them."""
    stopping.when_begun(services.changes.streams.stop)
    return add_management(services, basic_permission_endpoints(services, readiness))


def basic_permission_endpoints(services: Services, readiness: Readiness) -> list[Endpoint]:
    return [
        *ApplicationEndpoints(
            applications=services.commands.applications,
            authenticator=services.permissions.authenticator,
            base_url=services.base_url,
        ).endpoints(),
        CustomKeyEndpoint(
            keys=services.commands.custom_keys, authenticator=services.permissions.authenticator
        ).endpoint(),
        *PublicKeyEndpoints(services.permissions.application_keys).endpoints(),
        ExchangeJwtEndpoint(services.permissions.jwt_exchange).endpoint(),
        *user_endpoints(services),
        *ProjectEndpoints(
            publishing=services.commands.publishing,
            projects=services.commands.projects,
            memberships=services.commands.memberships,
            full_removal=services.commands.full_removal,
            authenticator=services.permissions.authenticator,
        ).endpoints(),
        *GroupEndpoints(
            groups=services.commands.groups, authenticator=services.permissions.authenticator
        ).endpoints(),
        AccessKeyEndpoint(
            keys=services.commands.access_keys, authenticator=services.permissions.authenticator
        ).endpoint(),
        *SchemaEndpoints(
            schemas=services.commands.schemas,
            load_past_model=past_model_reader(services),
            roles=services.questions.role_list,
            authenticator=services.permissions.authenticator,
        ).endpoints(),
        SchemaVersionsEndpoint(
            versions=services.admin.schema_versions, authenticator=services.permissions.authenticator
        ).endpoint(),
        ServiceAccountEndpoint(
            accounts=services.commands.service_accounts, authenticator=services.permissions.authenticator
        ).endpoint(),
        *ObjectEndpoints(
            allowed_objects=services.questions.allowed_objects,
            commands=services.commands.objects,
            store=services.storage.objects,
            people=services.storage.permissions,
            authenticator=services.permissions.authenticator,
            cursors=Cursors(masters=services.core.masters, clock=services.clock),
        ).endpoints(),
        *question_endpoints(services),
        ClientEndpoint(
            clients=services.admin.application_clients,
            authenticator=services.permissions.authenticator,
            base_url=services.base_url,
        ).endpoint(),
        ServiceTokenEndpoint(
            tokens=services.commands.service_tokens, authenticator=services.permissions.authenticator
        ).endpoint(),
        EmailSecretEndpoint(
            secrets=services.commands.email_secrets, authenticator=services.permissions.authenticator
        ).endpoint(),
        GameSessionEndpoint(
            games=services.admin.visible_game_sessions,
            administration=services.games.administration,
            authenticator=services.permissions.authenticator,
        ).endpoint(),
        ActivityEndpoint(
            find=visible_record_reader(services), authenticator=services.permissions.authenticator
        ).endpoint(),
        settings_endpoint(services, readiness),
        WebhookEndpoint(
            webhooks=services.webhooks.commands, authenticator=services.permissions.authenticator
        ).endpoint(),
        ChangesEndpoint(streams=services.changes.streams, readers=services.changes.readers).endpoint(),
    ]


def user_import_endpoint(services: Services) -> Endpoint:
    @cache
    def load() -> BulkInvitations:
        from gatehouse.app.services.people import bulk_invitations  # noqa: PLC0415 - few processes use it

        return bulk_invitations(services)

    return UserImportEndpoint(
        people=PeopleImport(services.accounts.importer),
        load_invitations=load,
        authenticator=services.permissions.authenticator,
    ).endpoint()


def user_endpoints(services: Services) -> list[Endpoint]:
    people = services.commands.user_labels
    return [
        *UserEndpoints(people=people, authenticator=services.permissions.authenticator).endpoints(),
        user_admin_endpoint(services),
        BanEndpoint(
            bans=services.commands.bans,
            cursors=Cursors(masters=services.core.masters, clock=services.clock),
            authenticator=services.permissions.authenticator,
            clock=services.clock,
        ).endpoint(),
        user_import_endpoint(services),
        *UserSessionEndpoints(
            people=people,
            sessions=services.accounts.sessions,
            consents=services.oauth.consents,
            given_grants=services.oauth.given_grants,
            profile=services.accounts.profile,
            places=services.geoip,
            authenticator=services.permissions.authenticator,
        ).endpoints(),
        UserRolesEndpoint(
            people=people,
            find_direct_permissions=direct_permissions_reader(services),
            authenticator=services.permissions.authenticator,
        ).endpoint(),
        *UserRecordEndpoint(
            views=services.questions.user_record_views,
            schemas=services.commands.user_records,
            authenticator=services.permissions.authenticator,
            clock=services.clock,
            max_age=services.settings.permissions.max_age_seconds,
        ).endpoints(),
    ]


def user_admin_endpoint(services: Services) -> Endpoint:
    @cache
    def load() -> UserAdminServices:
        from gatehouse.app.services.people import user_admin_services  # noqa: PLC0415 - few processes use it

        return user_admin_services(services)

    return UserAdminEndpoint(
        load=load,
        data_requests=services.personal_data.requests,
        data_export=services.personal_data.export,
        authenticator=services.permissions.authenticator,
        cursors=Cursors(masters=services.core.masters, clock=services.clock),
        clock=services.clock,
        base_url=services.base_url,
    ).endpoint()


def question_endpoints(services: Services) -> list[Endpoint]:
    """check, explain, members, simulate, and the questions of AuthZEN."""
    questions = QuestionEndpoints(
        checks=services.questions.checks,
        explanations=services.questions.guarded_explainer,
        object_explanations=services.questions.object_explainer,
        members=services.questions.member_search,
        authenticator=services.permissions.authenticator,
        max_age=services.settings.permissions.max_age_seconds,
    )
    simulate = SimulationEndpoint(
        simulation=services.questions.simulation, authenticator=services.permissions.authenticator
    )
    access_requests = AccessRequestEndpoints(
        requests=services.questions.access_requests,
        authenticator=services.permissions.authenticator,
        cursors=Cursors(masters=services.core.masters, clock=services.clock),
        base_url=services.base_url,
    )
    return [*questions.endpoints(), simulate.endpoint(), *access_requests.endpoints()]


def past_model_reader(services: Services) -> LoadPastModel:
    async def load(model: ApplicationModel, version: int) -> ApplicationModel:
        return (await schema_at_version(services.admin.schema_versions, model, version)).model

    return load


def direct_permissions_reader(services: Services) -> FindDirectPermissions:
    async def find(user_id: str) -> DirectPermissions:
        from gatehouse.admin.people import PeopleListStore  # noqa: PLC0415 - 0.5 MB that few processes use

        return await PeopleListStore(services.storage.runner).direct_permissions(user_id)

    return find


def visible_record_reader(services: Services) -> FindRecord:
    async def find(request: AuthenticatedRequest, record_id: str) -> AuditRecord | Refusal:
        from gatehouse.app.services.activity import visible_record  # noqa: PLC0415 - 0.5 MB that few processes use

        return await visible_record(services, request, record_id)

    return find


def settings_endpoint(services: Services, readiness: Readiness) -> Endpoint:
    @cache
    def parts() -> SettingsPartReader:
        from gatehouse.app.services.installation import setting_parts  # noqa: PLC0415 - few processes use it

        return setting_parts(services, readiness)

    return SettingsEndpoint(parts=parts, authenticator=services.permissions.authenticator).endpoint()
