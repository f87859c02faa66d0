"""Every path of the service, and the ASGI application that the listeners serve."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp

from gatehouse import __version__
from gatehouse.app.readiness import readiness_checks
from gatehouse.app.services.accounts import (
    AccountServices,
    account_services,
    build_browsers,
    login_endpoint,
    user_pages,
)
from gatehouse.app.services.core import Services
from gatehouse.app.services.games import GameServices, game_endpoints, game_sockets
from gatehouse.app.services.oauth import client_origins, oauth_endpoints
from gatehouse.app.services.permissions import PermissionServices, permission_endpoints, permission_services
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.graphics import Color, image_media_type
from gatehouse.keys.jwks import KeySetPublisher
from gatehouse.settings import Settings
from gatehouse.throttle.rate_limiter import RateLimit, RateLimiter
from gatehouse.web.api.health import HealthEndpoints, Readiness, allow_bearer
from gatehouse.web.api.keys import KeySetEndpoints
from gatehouse.web.console.lazy_console import ConsoleHandler, LazyConsole, SignInGate
from gatehouse.web.http.context import AccessLog, RequestContext
from gatehouse.web.http.errors import ErrorRenderer
from gatehouse.web.http.metrics import Metrics
from gatehouse.web.http.routing import Endpoint, RateClass, build_application
from gatehouse.web.pages.api_docs import docs_endpoints
from gatehouse.web.pages.assets import Assets, packaged_assets
from gatehouse.web.pages.branding import DARK_LOGO_FILE, LOGO_FILE, BrandAssets, BrandFile
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.setup import NO_SAMPLES, SampleCommands, SetupPage
from gatehouse.web.server.server import ShutdownSignal
from gatehouse.web.server.static_documents import StaticDocuments


def branding(settings: Settings) -> BrandAssets:
    chosen = settings.branding
    paths = {LOGO_FILE: chosen.logo, DARK_LOGO_FILE: chosen.logo_dark}
    return BrandAssets(
        name=chosen.name,
        wordmark=chosen.wordmark,
        accent=Color.parse(chosen.accent) if chosen.accent else None,
        logos={name: load_logo(Path(path)) for name, path in paths.items() if path},
    )


def load_logo(path: Path) -> BrandFile:
    """Load a file that the settings have checked."""
    content = path.read_bytes()
    return BrandFile(media_type=image_media_type(content), content=content)


CONSOLE_MODULE: Final = "gatehouse.app.services.console"


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
    """Connect the services to HTTP; `stopping` is the server's, for endpoints that hold requests.

    `samples`: commands shown to the first administrator. `demo`: every page says that it is one.
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
    served = build_application(
        table,
        limiter=limiter,
        errors=errors,
        is_registered_origin=client_origins(services).is_registered,
        more_routes=[sockets.route()],
    )
    log = AccessLog(metrics=metrics, clock=services.clock)
    context = RequestContext(
        served,
        errors=errors,
        https=settings.server.base_url.startswith("https:"),
        trusted_proxies=settings.server.trusted_proxies,
        log=log,
    )
    return ServedApp(
        app=context,
        static_documents=StaticDocuments(table, context=context, limiter=limiter, log=log),
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
    """Loaded with its first request: few processes ever get one."""
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
