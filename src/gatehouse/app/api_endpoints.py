"""The endpoints of the API, in the order of the interface document."""

from functools import cache

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
    return KeySetEndpoints(KeySetPublisher(keyring=services.keyring, clock=services.clock)).endpoints()


def oauth_endpoints(services: Services, pages: PageRenderer) -> list[Endpoint]:
    """Interface §4.2, then what R3 adds to it; the pages that authorize leads to are in page_endpoints.py."""
    denied_page = AccessDeniedPage(reasons=services.denial_reasons, owners=services.application_owners, pages=pages)
    authorize = AuthorizeEndpoint(
        authorize=services.authorize,
        sign_in_flows=services.sign_in_flows,
        browsers=services.browsers,
        error_page=ClientErrorPage(rules=services.login_rules, pages=pages, refusals=services.page_refusals),
        denied_page=denied_page,
        rate_limiter=services.rate_limiter,
        pages=pages,
    )
    exchange = ExchangeEndpoints(id_tokens=services.id_token_exchange, user_jwts=services.user_jwt_exchange)
    logout = LogoutEndpoints(
        logouts=services.logout_requests,
        sessions=services.sessions,
        browsers=services.browsers,
        pages=pages,
        refusals=services.page_refusals,
    )
    return [
        *DiscoveryEndpoints(
            provider_metadata(
                services.base_url,
                languages=LANGUAGES,
                documents=bool(services.settings.oauth.client_document_hosts),
            )
        ).endpoints(),
        *authorize.endpoints(),
        TokenHttpEndpoint(services.token_endpoint).endpoint(),
        UserInfoEndpoint(services.userinfo).endpoint(),
        *RevocationEndpoints(services.revocation).endpoints(),
        *exchange.endpoints(),
        IntrospectionEndpoint(services.introspection).endpoint(),
        *device_endpoints(services, denied_page, pages),
        *logout.endpoints(),
    ]


def device_endpoints(services: Services, denied_page: AccessDeniedPage, pages: PageRenderer) -> list[Endpoint]:
    authorization = DeviceAuthorizationEndpoint(
        authentication=services.client_authenticator,
        device_authorization=services.device_authorization,
        rate_limiter=services.rate_limiter,
        base_url=services.base_url,
    )
    device_pages = DevicePages(
        device_authorization=services.device_authorization,
        clients=services.storage.clients,
        sign_in_flows=services.sign_in_flows,
        browsers=services.browsers,
        denied_page=denied_page,
        pages=pages,
    )
    return [authorization.endpoint(), *device_pages.endpoints()]


def site_endpoints(services: Services, pages: PageRenderer) -> list[Endpoint]:
    """Forward auth (R9): what a reverse proxy asks, and the sign-in to the sites behind it."""
    cookies = SiteCookies()
    denied_page = SiteDeniedPage(pages=pages, base_url=services.base_url)
    forward_auth = ForwardAuthEndpoint(
        authentication=services.site_authentication, cookies=cookies, denied_page=denied_page
    )
    site_pages = SiteSignInPages(
        site_sign_in=services.site_sign_in,
        cookies=cookies,
        sign_in_flows=services.sign_in_flows,
        browsers=services.browsers,
        owners=services.application_owners,
        denied_page=denied_page,
        pages=pages,
        rate_limiter=services.rate_limiter,
        base_url=services.base_url,
    )
    return [forward_auth.endpoint(), *site_pages.endpoints()]


def game_endpoints(services: Services, stopping: ShutdownSignal) -> list[Endpoint]:
    """Interface §4.3: game sessions."""
    stopping.when_begun(services.waiters.stop)
    return GameSessionEndpoints(
        registration=services.game_registration,
        polls=services.polls,
        game_sessions=services.game_sessions,
        guests=services.guest_sign_in,
        keys=AccessKeySignatureVerifier(services.access_key_verifier),
        records=services.game_refusals,
        clock=services.clock,
        base_url=services.base_url,
    ).endpoints()


def login_endpoints(services: Services, pages: PageRenderer) -> list[Endpoint]:
    """Interface §4.11: the ordinary login operation; R10: with a ticket of a platform, and of guests."""
    completion = LoginCompletion(
        accounts=services.storage.accounts,
        factors=services.second_factors,
        email_codes=services.email_codes,
        sign_in_flows=services.sign_in_flows,
        login_result=services.login_result,
        masters=services.masters,
    )
    return [
        LoginEndpoint(sign_in=services.password_sign_in, completion=completion).endpoint(),
        PlatformLoginEndpoint(sign_in=services.platform_sign_in, completion=completion, pages=pages).endpoint(),
        GuestEndpoint(
            guests=services.guest_sign_in, login_result=services.login_result, completion=completion, pages=pages
        ).endpoint(),
    ]


def permission_endpoints(services: Services, readiness: Readiness, stopping: ShutdownSignal) -> list[Endpoint]:
    """Interface §4.4 to §4.10, §4.14; management adds lists and Idempotency-Key to some of them."""
    stopping.when_begun(services.change_streams.stop)
    return add_management(services, basic_permission_endpoints(services, readiness))


def basic_permission_endpoints(services: Services, readiness: Readiness) -> list[Endpoint]:
    return [
        *ApplicationEndpoints(
            applications=services.application_commands,
            authenticator=services.authenticator,
            base_url=services.base_url,
        ).endpoints(),
        CustomKeyEndpoint(keys=services.custom_key_commands, authenticator=services.authenticator).endpoint(),
        *PublicKeyEndpoints(services.application_keys).endpoints(),
        ExchangeJwtEndpoint(services.jwt_exchange).endpoint(),
        *user_endpoints(services),
        *ProjectEndpoints(
            publishing=services.project_publisher,
            projects=services.project_commands,
            memberships=services.membership_commands,
            full_removal=services.full_removal,
            authenticator=services.authenticator,
        ).endpoints(),
        *GroupEndpoints(groups=services.group_commands, authenticator=services.authenticator).endpoints(),
        AccessKeyEndpoint(keys=services.access_key_commands, authenticator=services.authenticator).endpoint(),
        *SchemaEndpoints(
            schemas=services.schema_commands,
            load_past_model=past_model_reader(services),
            roles=services.role_list,
            authenticator=services.authenticator,
        ).endpoints(),
        SchemaVersionsEndpoint(
            versions=services.schema_version_storage, authenticator=services.authenticator
        ).endpoint(),
        ServiceAccountEndpoint(accounts=services.service_accounts, authenticator=services.authenticator).endpoint(),
        *question_endpoints(services),
        ClientEndpoint(
            clients=services.application_clients, authenticator=services.authenticator, base_url=services.base_url
        ).endpoint(),
        ServiceTokenEndpoint(tokens=services.service_token_commands, authenticator=services.authenticator).endpoint(),
        EmailSecretEndpoint(secrets=services.email_secrets, authenticator=services.authenticator).endpoint(),
        GameSessionEndpoint(
            games=services.visible_game_sessions,
            administration=services.game_session_admin,
            authenticator=services.authenticator,
        ).endpoint(),
        ActivityEndpoint(find=visible_record_reader(services), authenticator=services.authenticator).endpoint(),
        settings_endpoint(services, readiness),
        WebhookEndpoint(webhooks=services.webhooks, authenticator=services.authenticator).endpoint(),
        ChangesEndpoint(streams=services.change_streams, readers=services.change_readers).endpoint(),
    ]


def user_endpoints(services: Services) -> list[Endpoint]:
    people = services.user_label_commands
    return [
        *UserEndpoints(people=people, authenticator=services.authenticator).endpoints(),
        user_admin_endpoint(services),
        BanEndpoint(
            bans=services.ban_commands,
            cursors=Cursors(masters=services.masters, clock=services.clock),
            authenticator=services.authenticator,
            clock=services.clock,
        ).endpoint(),
        UserImportEndpoint(people=PeopleImport(services.importer), authenticator=services.authenticator).endpoint(),
        *UserSessionEndpoints(
            people=people,
            sessions=services.sessions,
            consents=services.consents,
            profile=services.account_profile,
            places=services.geoip,
            authenticator=services.authenticator,
        ).endpoints(),
        UserRolesEndpoint(
            people=people,
            find_direct_permissions=direct_permissions_reader(services),
            authenticator=services.authenticator,
        ).endpoint(),
        *UserRecordEndpoint(
            views=services.user_record_views,
            schemas=services.user_record_commands,
            authenticator=services.authenticator,
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
        data_requests=services.data_requests,
        data_export=services.data_export,
        authenticator=services.authenticator,
        clock=services.clock,
        base_url=services.base_url,
    ).endpoint()


def question_endpoints(services: Services) -> list[Endpoint]:
    """check, explain, members and simulate."""
    questions = QuestionEndpoints(
        checks=services.checks,
        explanations=services.guarded_explainer,
        members=services.member_search,
        authenticator=services.authenticator,
        max_age=services.settings.permissions.max_age_seconds,
    )
    simulate = SimulationEndpoint(simulation=services.simulation, authenticator=services.authenticator)
    return [*questions.endpoints(), simulate.endpoint()]


def past_model_reader(services: Services) -> LoadPastModel:
    async def load(model: ApplicationModel, version: int) -> ApplicationModel:
        return (await schema_at_version(services.schema_version_storage, model, version)).model

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

    return SettingsEndpoint(parts=parts, authenticator=services.authenticator).endpoint()
