"""The part of the composition root that is about authorize: a person signs in to a client."""

from dataclasses import dataclass

from gatehouse.accounts.model import CENTRAL_APPLICATION, User
from gatehouse.app.services import core
from gatehouse.app.services.authentication import authentication_services
from gatehouse.app.services.core import DAY, Services
from gatehouse.kernel.errors import NotFound
from gatehouse.oauth.authorize.purpose import AuthorizeSignInPurpose
from gatehouse.oauth.authorize.service import AuthorizeService, Consents, GrantCreator, GrantLifetimes
from gatehouse.oauth.client_auth import ClientAuthenticator
from gatehouse.oauth.device import DeviceAuthorization, DeviceSignInPurpose
from gatehouse.oauth.store import ApplicationLoginRules
from gatehouse.permissions.evaluation.effective import CAN_ADMINISTER
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.login_rules import LoginRules
from gatehouse.permissions.model.rules import ROOT
from gatehouse.permissions.store import ApplicationStore, ProjectStore
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter
from gatehouse.web.api.oauth.device import DEVICE_LIMIT_KEY, DeviceAuthorizationEndpoint, DevicePages
from gatehouse.web.http.browser import BrowserSessions
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.access_denied import AccessDeniedPage, DenialReasons
from gatehouse.web.pages.rendering import PageRenderer


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationServices:
    authorize: AuthorizeService
    consents: Consents
    granting: GrantCreator
    purpose: AuthorizeSignInPurpose


def authorization_services(services: Services, rules: LoginRules) -> AuthorizationServices:
    clock, recorder, storage = services.clock, services.recorder, services.storage
    consents = Consents(store=storage.consents, recorder=recorder, clock=clock)
    wanted = services.settings.oauth
    granting = GrantCreator(
        store=storage.grants,
        recorder=recorder,
        clock=clock,
        lifetimes=GrantLifetimes(code_seconds=wanted.code_seconds, family_seconds=wanted.refresh_family_days * DAY),
    )
    authorize = AuthorizeService(
        clients=storage.clients,
        consents=consents,
        grant_creator=granting,
        rules=rules,
        verifier=authentication_services(services).verifier,
        clock=clock,
        issuer=services.settings.server.base_url,
    )
    occasion = AuthorizeSignInPurpose(authorize=authorize, clients=storage.clients, accounts=storage.accounts)
    return AuthorizationServices(authorize=authorize, consents=consents, granting=granting, purpose=occasion)


class ApplicationOwners:
    """Fills web/pages/consent.py Owners."""

    def __init__(self, *, applications: ApplicationStore, projects: ProjectStore) -> None:
        self._applications = applications
        self._projects = projects

    async def owner(self, application_id: int) -> str:
        try:
            application = await self._applications.application(application_id)
            if application.project_id is None:
                return ""
            return (await self._projects.project(application.project_id)).project.title
        except NotFound:
            return ""


class AdministratorCheck:
    """Fills web/pages/access_denied.py Administrators."""

    def __init__(self, reading: PermissionLoader) -> None:
        self._reading = reading

    async def is_administrator(self, user: User) -> bool:
        facts = await self._reading.load_facts(user.user_id, (CENTRAL_APPLICATION,))
        if facts is None:
            return False
        case = await self._reading.load_input(facts)
        return (await self._reading.evaluate(case, CENTRAL_APPLICATION, None)).allows(ROOT, CAN_ADMINISTER)


def application_owners(services: Services) -> ApplicationOwners:
    return ApplicationOwners(applications=services.storage.applications, projects=services.storage.projects)


def denied_reasons(services: Services, rules: LoginRules) -> DenialReasons:
    return DenialReasons(administrators=AdministratorCheck(services.permission_loader), refusals=rules)


# The part of the composition root that is about devices without a browser (RFC 8628).


def device_purpose(services: Services, *, rules: ApplicationLoginRules, consents: Consents) -> DeviceSignInPurpose:
    return DeviceSignInPurpose(
        store=services.storage.device_requests,
        clients=services.storage.clients,
        accounts=services.storage.accounts,
        consents=consents,
        rules=rules,
        recorder=services.recorder,
        clock=services.clock,
        family_seconds=services.settings.oauth.refresh_family_days * DAY,
    )


def device_endpoints(
    services: Services,
    *,
    authentication: ClientAuthenticator,
    interactions: SignInFlows,
    browsers: BrowserSessions,
    denied_page: AccessDeniedPage,
    pages: PageRenderer,
) -> list[Endpoint]:
    desk = DeviceAuthorization(
        store=services.storage.device_requests, guesses=core.guesses(services), clock=services.clock
    )
    rates = services.settings.rates
    asked = DeviceAuthorizationEndpoint(
        authentication=authentication,
        device_authorization=desk,
        rate_limiter=RateLimiter(
            {DEVICE_LIMIT_KEY: RateLimit(rates.login)} if rates.enabled else {}, clock=services.clock
        ),
        base_url=services.settings.server.base_url,
    )
    shown = DevicePages(
        device_authorization=desk,
        clients=services.storage.clients,
        sign_in_flows=interactions,
        browsers=browsers,
        denied_page=denied_page,
        pages=pages,
    )
    return [asked.endpoint(), *shown.endpoints()]
