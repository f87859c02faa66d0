"""What the listeners serve: the rooms of the house wired to HTTP."""

from dataclasses import dataclass
from importlib import import_module
from typing import Final

from starlette.types import ASGIApp

from gatehouse import __version__
from gatehouse.app.branding import branding
from gatehouse.app.gamesessions import GameRoom, game_endpoints, game_sockets
from gatehouse.app.house import House
from gatehouse.app.oauth import oauth_endpoints, origins
from gatehouse.app.people import People, browsers_of, login_endpoint, people, people_pages
from gatehouse.app.permissions import PermissionRooms, permission_endpoints, permission_rooms
from gatehouse.app.readiness import checks
from gatehouse.kernel.clock import Clock
from gatehouse.keys.jwks import KeySetPublisher
from gatehouse.settings import Settings
from gatehouse.throttle.volume import Volume, VolumeLimit
from gatehouse.web.console.door import Answer, Door, Threshold
from gatehouse.web.docs_page import endpoints as docs_endpoints
from gatehouse.web.errors import ErrorAnswers
from gatehouse.web.health import Health, Readiness, bearer_of
from gatehouse.web.keys import KeySetEndpoints
from gatehouse.web.metrics import Metrics
from gatehouse.web.middleware.access_log import AccessLog
from gatehouse.web.middleware.body_limit import BodyLimit
from gatehouse.web.middleware.client_address import ClientAddress
from gatehouse.web.middleware.client_origins import ClientOrigins
from gatehouse.web.middleware.request_id import RequestId
from gatehouse.web.middleware.security_headers import SecurityHeaders
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.setup import NO_SAMPLES, SampleCommands, SetupPage
from gatehouse.web.routes.table import Endpoint, RateClass, application, body_limits, client_paths
from gatehouse.web.server import Stopping
from gatehouse.web.static import Assets, our_assets
from gatehouse.web.static_documents import StaticDocuments

CONSOLE: Final = "gatehouse.app.console"


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What the listeners serve."""

    app: ASGIApp
    static_documents: StaticDocuments  # beside it: what need not go through the application
    readiness: Readiness
    metrics: Metrics
    game: GameRoom


def front(house: House, *, stopping: Stopping, samples: SampleCommands = NO_SAMPLES, demo: bool = False) -> Front:
    """Wire the rooms to HTTP; `stopping` is the server's, for whatever holds requests.

    `samples`: commands that the first administrator is told. `demo`: say on every page that it is one.
    """
    settings = house.settings
    assets = our_assets()
    look = branding(settings)
    pages = Pages(assets, https=settings.server.base_url.startswith("https:"), demo=demo, brand=look.brand)
    readiness = Readiness(
        checks(house.storage, house.keyring, house.clock), clock=house.clock, leaving=lambda: stopping.leaving
    )
    them = people(house)
    table = endpoints(
        house, them, readiness=readiness, pages=pages, assets=assets, stopping=stopping, samples=samples
    )
    names = ["health.alive", "health.ready", "health.metrics", *(endpoint.name for endpoint in table)]
    metrics = Metrics(names, held=lambda: len(them.game.waiters), permission_cache=lambda: house.reading.cache_weight)
    health = Health(readiness=readiness, metrics=metrics, gate=bearer_of(settings.operations.token.reveal()))
    table += [look.endpoint(), *health.endpoints()]
    table += docs_endpoints(table, assets=assets, base_url=settings.server.base_url, version=__version__, demo=demo)
    errors = ErrorAnswers(
        render_error=pages.error,
        recognise=browsers_of(house, them).read,
        permissions_always_200=settings.permissions.always_200,
    )
    limiter = Limiter(settings, house.clock)
    sockets = game_sockets(house, them.game, errors=errors, limiter=limiter, stopping=stopping)
    served: ASGIApp = application(table, limiter=limiter, errors=errors, more_routes=[sockets.route()])
    served = ClientOrigins(served, paths=client_paths(table), is_registered=origins(house).is_registered)
    served = BodyLimit(served, larger=body_limits(table), refuse=errors.refuse)
    addresses = ClientAddress(served, trusted=settings.server.trusted_proxies, refuse=errors.refuse)
    log = AccessLog(addresses, metrics=metrics, clock=house.clock)
    dressed = SecurityHeaders(log, https=settings.server.base_url.startswith("https:"))
    return Front(
        app=RequestId(dressed),
        static_documents=StaticDocuments(
            table, addresses=addresses, limiter=limiter, security_headers=dressed, log=log
        ),
        readiness=readiness,
        metrics=metrics,
        game=them.game,
    )


def endpoints(
    house: House,
    them: People,
    *,
    readiness: Readiness,
    pages: Pages,
    assets: Assets,
    stopping: Stopping,
    samples: SampleCommands = NO_SAMPLES,
) -> list[Endpoint]:
    """Every path of the service, in the order of the interface document."""
    setup_page = SetupPage(
        setup=house.setup,
        guesses=them.guesses,
        pages=pages,
        base_url=house.settings.server.base_url,
        samples=samples,
    )
    rooms = permission_rooms(house, readiness)
    return [
        # interface §4.2 and §4.4: keys
        *KeySetEndpoints(KeySetPublisher(keyring=house.keyring, clock=house.clock)).endpoints(),
        # interface §4.2: OAuth and OpenID Connect
        *oauth_endpoints(house, them, pages=pages),
        # interface §4.3: game sessions
        *game_endpoints(house, them.game, stopping=stopping),
        # interface §4.11: the ordinary login operation
        login_endpoint(house, them),
        # interface §4.4 to §4.10: permissions
        *permission_endpoints(house, rooms, them),
        # pages
        *setup_page.endpoints(),
        *people_pages(house, them, pages=pages, desk=rooms.desk),
        *console(house, them, rooms=rooms, pages=pages, samples=samples).endpoints(),
        assets.endpoint(),
    ]


def console(house: House, them: People, *, rooms: PermissionRooms, pages: Pages, samples: SampleCommands) -> Door:
    """Loaded with its first visitor: few processes ever have one."""
    threshold = Threshold(browsers=browsers_of(house, them), interactions=them.interactions)

    def furnish() -> Answer:
        furnished: Answer = import_module(CONSOLE).console(
            house, them, threshold=threshold, rooms=rooms, pages=pages, samples=samples
        )
        return furnished

    return Door(furnish, threshold)


class Limiter:
    """Requests per minute by class of endpoint, as the settings say."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        per_minute = {rate: getattr(settings.rates, rate.value) for rate in RateClass}
        limits = (
            {rate.value: VolumeLimit(most) for rate, most in per_minute.items()} if settings.rates.enabled else {}
        )
        self._volume = Volume(limits, clock=clock)

    def admit(self, rate_class: RateClass, source: str) -> int:
        return self._volume.admit(rate_class.value, source)
