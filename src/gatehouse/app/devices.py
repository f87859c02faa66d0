"""The part of the composition root that is about devices without a browser (RFC 8628)."""

from gatehouse.app import guessing
from gatehouse.app.house import DAY, Services
from gatehouse.interaction.dispatcher import SignInFlows
from gatehouse.oauth.client_authentication import ClientAuthenticator
from gatehouse.oauth.consent import Consents
from gatehouse.oauth.device import DeviceAuthorization
from gatehouse.oauth.device_occasion import DeviceSignInPurpose
from gatehouse.oauth.ports import ApplicationLoginRules
from gatehouse.throttle.volume import RateLimit, RateLimiter
from gatehouse.web.browser import BrowserSessions
from gatehouse.web.oauth.denied_page import AccessDeniedPage
from gatehouse.web.oauth.device import DEVICE_LIMIT_KEY, DeviceAuthorizationEndpoint, DevicePages
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.routes.table import Endpoint


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
        store=services.storage.device_requests, guesses=guessing.guesses(services), clock=services.clock
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
