"""What the listeners serve: the rooms of the house wired to HTTP."""

from dataclasses import dataclass
from importlib import import_module
from typing import Final

from starlette.types import ASGIApp

from gatehouse import __version__
from gatehouse.app.branding import branding
from gatehouse.app.gamesessions import GameServices, game_endpoints, game_sockets
from gatehouse.app.house import Services
from gatehouse.app.oauth import client_origins, oauth_endpoints
from gatehouse.app.people import AccountServices, account_services, build_browsers, login_endpoint, user_pages
from gatehouse.app.permissions import PermissionServices, permission_endpoints, permission_services
from gatehouse.app.readiness import readiness_checks
from gatehouse.kernel.clock import Clock
from gatehouse.keys.jwks import KeySetPublisher
from gatehouse.settings import Settings
from gatehouse.throttle.volume import RateLimit, RateLimiter
from gatehouse.web.console.door import ConsoleHandler, LazyConsole, SignInGate
from gatehouse.web.docs_page import docs_endpoints
from gatehouse.web.errors import ErrorRenderer
from gatehouse.web.health import HealthEndpoints, Readiness, allow_bearer
from gatehouse.web.keys import KeySetEndpoints
from gatehouse.web.metrics import Metrics
from gatehouse.web.middleware.access_log import AccessLogMiddleware
from gatehouse.web.middleware.body_limit import BodyLimitMiddleware
from gatehouse.web.middleware.client_address import ClientAddressMiddleware
from gatehouse.web.middleware.client_origins import ClientCorsMiddleware
from gatehouse.web.middleware.request_id import RequestIdMiddleware
from gatehouse.web.middleware.security_headers import SecurityHeadersMiddleware
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.setup import NO_SAMPLES, SampleCommands, SetupPage
from gatehouse.web.routes.table import Endpoint, RateClass, body_limits, build_application, client_cors_paths
from gatehouse.web.server import ShutdownSignal
from gatehouse.web.static import Assets, packaged_assets
from gatehouse.web.static_documents import StaticDocuments

CONSOLE_MODULE: Final = "gatehouse.app.console"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedApp:
    """What the listeners serve."""

    app: ASGIApp
    static_documents: StaticDocuments  # beside it: what need not go through the application
    readiness: Readiness
    metrics: Metrics
    games: GameServices


def build_app(
    services: Services, *, stopping: ShutdownSignal, samples: SampleCommands = NO_SAMPLES, demo: bool = False
) -> ServedApp:
    """Wire the rooms to HTTP; `stopping` is the server's, for whatever holds requests.

    `samples`: commands that the first administrator is told. `demo`: say on every page that it is one.
    """
    settings = services.settings
    assets = packaged_assets()
    look = branding(settings)
    pages = PageRenderer(assets, https=settings.server.base_url.startswith("https:"), demo=demo, brand=look.brand)
    readiness = Readiness(
        readiness_checks(services.storage, services.keyring, services.clock),
        clock=services.clock,
        is_stopping=lambda: stopping.announced,
    )
    them = account_services(services)
    table = endpoints(
        services, them, readiness=readiness, pages=pages, assets=assets, stopping=stopping, samples=samples
    )
    names = ["health.alive", "health.ready", "health.metrics", *(endpoint.name for endpoint in table)]
    metrics = Metrics(
        names,
        held_requests=lambda: len(them.games.waiters),
        permission_cache=lambda: services.permission_loader.cache_weight,
    )
    health = HealthEndpoints(
        readiness=readiness, metrics=metrics, details_allowed=allow_bearer(settings.operations.token.reveal())
    )
    table += [look.endpoint(), *health.endpoints()]
    table += docs_endpoints(table, assets=assets, base_url=settings.server.base_url, version=__version__, demo=demo)
    errors = ErrorRenderer(
        render_error=pages.render_error,
        identify_reader=build_browsers(services, them).read,
        permissions_always_200=settings.permissions.always_200,
    )
    limiter = EndpointRateLimits(settings, services.clock)
    sockets = game_sockets(services, them.games, errors=errors, limiter=limiter, stopping=stopping)
    served: ASGIApp = build_application(table, limiter=limiter, errors=errors, more_routes=[sockets.route()])
    served = ClientCorsMiddleware(
        served, paths=client_cors_paths(table), is_registered=client_origins(services).is_registered
    )
    served = BodyLimitMiddleware(served, limits_by_path=body_limits(table), refuse=errors.refuse)
    addresses = ClientAddressMiddleware(served, trusted=settings.server.trusted_proxies, refuse=errors.refuse)
    log = AccessLogMiddleware(addresses, metrics=metrics, clock=services.clock)
    dressed = SecurityHeadersMiddleware(log, https=settings.server.base_url.startswith("https:"))
    return ServedApp(
        app=RequestIdMiddleware(dressed),
        static_documents=StaticDocuments(
            table, addresses=addresses, limiter=limiter, security_headers=dressed, log=log
        ),
        readiness=readiness,
        metrics=metrics,
        games=them.games,
    )


def endpoints(
    services: Services,
    accounts: AccountServices,
    *,
    readiness: Readiness,
    pages: PageRenderer,
    assets: Assets,
    stopping: ShutdownSignal,
    samples: SampleCommands = NO_SAMPLES,
) -> list[Endpoint]:
    """Every path of the service, in the order of the interface document."""
    setup_page = SetupPage(
        setup=services.setup,
        attempts=accounts.guesses,
        pages=pages,
        base_url=services.settings.server.base_url,
        samples=samples,
    )
    rooms = permission_services(services, readiness)
    return [
        # interface §4.2 and §4.4: keys
        *KeySetEndpoints(KeySetPublisher(keyring=services.keyring, clock=services.clock)).endpoints(),
        # interface §4.2: OAuth and OpenID Connect
        *oauth_endpoints(services, accounts, pages=pages),
        # interface §4.3: game sessions
        *game_endpoints(services, accounts.games, stopping=stopping),
        # interface §4.11: the ordinary login operation
        login_endpoint(services, accounts),
        # interface §4.4 to §4.10: permissions
        *permission_endpoints(services, rooms, accounts),
        # pages
        *setup_page.endpoints(),
        *user_pages(services, accounts, pages=pages, authenticator=rooms.authenticator),
        *lazy_console(services, accounts, permissions=rooms, pages=pages, samples=samples).endpoints(),
        assets.endpoint(),
    ]


def lazy_console(
    services: Services,
    accounts: AccountServices,
    *,
    permissions: PermissionServices,
    pages: PageRenderer,
    samples: SampleCommands,
) -> LazyConsole:
    """Loaded with its first visitor: few processes ever have one."""
    threshold = SignInGate(browsers=build_browsers(services, accounts), sign_in_flows=accounts.sign_in_flows)

    def furnish() -> ConsoleHandler:
        furnished: ConsoleHandler = import_module(CONSOLE_MODULE).console(
            services, accounts, threshold=threshold, rooms=permissions, pages=pages, samples=samples
        )
        return furnished

    return LazyConsole(furnish, threshold)


class EndpointRateLimits:
    """Requests per minute by class of endpoint, as the settings say."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        per_minute = {rate: getattr(settings.rates, rate.value) for rate in RateClass}
        limits = {rate.value: RateLimit(most) for rate, most in per_minute.items()} if settings.rates.enabled else {}
        self._volume = RateLimiter(limits, clock=clock)

    def admit(self, rate_class: RateClass, source: str) -> int:
        return self._volume.admit(rate_class.value, source)
