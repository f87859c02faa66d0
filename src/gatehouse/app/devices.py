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


def device_purpose(house: Services, *, rules: ApplicationLoginRules, consents: Consents) -> DeviceSignInPurpose:
    return DeviceSignInPurpose(
        store=house.storage.device_requests,
        clients=house.storage.oauth,
        accounts=house.storage.accounts,
        consents=consents,
        rules=rules,
        recorder=house.recorder,
        clock=house.clock,
        family=house.settings.oauth.refresh_family_days * DAY,
    )


def device_endpoints(
    house: Services,
    *,
    authentication: ClientAuthenticator,
    interactions: SignInFlows,
    browsers: BrowserSessions,
    denied_page: AccessDeniedPage,
    pages: PageRenderer,
) -> list[Endpoint]:
    desk = DeviceAuthorization(
        store=house.storage.device_requests, guesses=guessing.guesses(house), clock=house.clock
    )
    rates = house.settings.rates
    asked = DeviceAuthorizationEndpoint(
        authentication=authentication,
        desk=desk,
        volume=RateLimiter({DEVICE_LIMIT_KEY: RateLimit(rates.login)} if rates.enabled else {}, clock=house.clock),
        base_url=house.settings.server.base_url,
    )
    shown = DevicePages(
        desk=desk,
        clients=house.storage.oauth,
        interactions=interactions,
        browsers=browsers,
        denied_page=denied_page,
        pages=pages,
    )
    return [asked.endpoint(), *shown.endpoints()]
