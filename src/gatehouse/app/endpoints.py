"""What the listeners serve: the endpoints of the services and the application around them."""

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from pathlib import Path

from msgspec import Struct
from starlette.types import ASGIApp

from gatehouse import __version__
from gatehouse.app.api_endpoints import (
    game_endpoints,
    key_set_endpoints,
    login_endpoints,
    oauth_endpoints,
    permission_endpoints,
    site_endpoints,
)
from gatehouse.app.figures import figures_of
from gatehouse.app.page_endpoints import (
    account_endpoints,
    account_view,
    registration_endpoints,
    setup_endpoints,
    sign_in_endpoints,
)
from gatehouse.app.readiness import readiness_checks
from gatehouse.app.services import Services
from gatehouse.images.model import image_path
from gatehouse.kernel.graphics import Color
from gatehouse.kernel.image_types import image_media_type
from gatehouse.kernel.stored_settings import referenced_image
from gatehouse.settings.appearance import BrandingSettings
from gatehouse.web.api.game_sockets import GameSocketEndpoint
from gatehouse.web.api.health import HealthEndpoints, Readiness, SecurityTextEndpoint, allow_bearer
from gatehouse.web.api.passkey_origins import passkey_origins_endpoint
from gatehouse.web.console.lazy_console import BuildSection, LazyConsole, SectionHandlers, SignInGate
from gatehouse.web.console.path_table import CONSOLE_PATHS, GALLERY
from gatehouse.web.http.context import AccessLog, RequestContext
from gatehouse.web.http.errors import ErrorRenderer
from gatehouse.web.http.metrics import Metrics
from gatehouse.web.http.routing import Endpoint, build_application
from gatehouse.web.pages.account_request import NoticeCookie
from gatehouse.web.pages.api_docs import DocsPage
from gatehouse.web.pages.assets import Assets, packaged_assets
from gatehouse.web.pages.branding import DARK_LOGO_FILE, LOGO_FILE, BrandAssets, BrandFile, brand_endpoint
from gatehouse.web.pages.client_files import client_files_endpoint
from gatehouse.web.pages.guides import GuideEndpoints
from gatehouse.web.pages.images import image_endpoint
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.setup import NO_SAMPLES, SampleCommands
from gatehouse.web.pages.translations import language_policy
from gatehouse.web.server.server import ShutdownSignal


@lru_cache(maxsize=1)
def branding(chosen: BrandingSettings) -> BrandAssets:
    logos = {LOGO_FILE: chosen.logo, DARK_LOGO_FILE: chosen.logo_dark}
    return BrandAssets(
        name=chosen.name,
        wordmark=chosen.wordmark,
        accent=Color.parse(chosen.accent) if chosen.accent else None,
        logos={name: load_logo(value) for name, value in logos.items() if value},
    )


def load_logo(value: str) -> BrandFile | str:
    """Return the address of a stored image, or the content of a file that the settings have checked."""
    if image_id := referenced_image(value):
        return image_path(image_id)
    content = Path(value).read_bytes()
    return BrandFile(media_type=image_media_type(content), content=content)


def read_security_txt(path: str) -> bytes:
    """Read the file, which the settings have checked; empty without one."""
    return Path(path).read_bytes() if path else b""


class ServedApp(Struct, frozen=True, kw_only=True):
    app: ASGIApp
    readiness: Readiness
    metrics: Metrics


def build_app(
    services: Services, *, stopping: ShutdownSignal, samples: SampleCommands = NO_SAMPLES, demo: bool = False
) -> ServedApp:
    """Build the application; held requests end when `stopping` begins.

    `samples`: commands that the setup page suggests. `demo`: every page says that this is a demo.
    """
    settings = services.settings
    assets = packaged_assets()
    pages = PageRenderer(
        assets,
        https=services.core.is_https,
        demo=demo,
        brand=lambda: branding(services.settings.branding).brand,
        language_policy=lambda: language_policy(services.settings.languages),
    )
    readiness = Readiness(
        readiness_checks(services),
        clock=services.clock,
        is_stopping=lambda: stopping.announced,
    )
    listen_for_notices(services)
    table = endpoints(services, readiness=readiness, pages=pages, assets=assets, stopping=stopping, samples=samples)
    names = ["health.alive", "health.ready", "health.metrics", *(endpoint.name for endpoint in table)]
    metrics = Metrics(names, figures=figures_of(services))
    health = HealthEndpoints(
        readiness=readiness, metrics=metrics, details_allowed=allow_bearer(settings.operations.token.reveal())
    )
    table += [
        brand_endpoint(lambda request: branding(services.settings.branding).serve(request)),
        *health.endpoints(),
        passkey_origins_endpoint(services.factors.passkeys),
        SecurityTextEndpoint(read_security_txt(settings.operations.security_txt)).endpoint(),
    ]
    table += GuideEndpoints(pages).endpoints()
    table += client_files_endpoint()
    table += docs_page(services, pages, table).endpoints()
    errors = ErrorRenderer(
        render_error=pages.render_error,
        identify_reader=services.accounts.browsers.read,
        store_refusal=services.audit.page_refusals.store,
        permissions_always_200=settings.permissions.always_200,
    )
    sockets = game_sockets(services, errors=errors, stopping=stopping)
    served = build_application(
        table,
        limiter=services.limits.requests,
        errors=errors,
        is_registered_origin=services.storage.clients.is_registered_origin,
        more_routes=[sockets.route()],
    )
    log = AccessLog(metrics=metrics, clock=services.clock)
    context = RequestContext(
        served,
        errors=errors,
        https=services.core.is_https,
        trusted_proxies=settings.server.trusted_proxies,
        log=log,
    )
    return ServedApp(
        app=context,
        readiness=readiness,
        metrics=metrics,
    )


def listen_for_notices(services: Services) -> None:
    """Hear from here on what other processes did to game sessions, and of sealed audit records."""
    services.storage.game_sessions.listen_for_changes(services.games.notices.handle_notice)
    services.storage.audit.listen_for_seals(lambda _: services.changes.feed.notify())


def docs_page(services: Services, pages: PageRenderer, table: Sequence[Endpoint]) -> DocsPage:
    return DocsPage(
        tuple(table),
        view=account_view(services, pages, NoticeCookie(https=services.core.is_https)),
        pages=pages,
        browsers=services.accounts.browsers,
        tokens=services.accounts.user_tokens,
        base_url=services.settings.server.base_url,
        version=__version__,
    )


def endpoints(
    services: Services,
    *,
    readiness: Readiness,
    pages: PageRenderer,
    assets: Assets,
    stopping: ShutdownSignal,
    samples: SampleCommands = NO_SAMPLES,
) -> list[Endpoint]:
    """Every path of the service, in the order of the interface document."""
    return [
        *key_set_endpoints(services),
        *oauth_endpoints(services, pages),
        *game_endpoints(services, stopping),
        *site_endpoints(services, pages),
        *login_endpoints(services, pages),
        *permission_endpoints(services, readiness, stopping),
        *setup_endpoints(services, pages, samples),
        *sign_in_endpoints(services, pages),
        *registration_endpoints(services, pages),
        *account_endpoints(services, pages),
        *lazy_console(services, readiness=readiness, pages=pages, samples=samples).endpoints(),
        assets.endpoint(),
        image_endpoint(services.storage.images.find_image),
    ]


def lazy_console(
    services: Services, *, readiness: Readiness, pages: PageRenderer, samples: SampleCommands
) -> LazyConsole:
    sign_in_gate = SignInGate(browsers=services.accounts.browsers, sign_in_flows=services.sign_in_flows)

    @cache
    def load() -> BuildSection:
        from gatehouse.app.console.sections import build_section  # noqa: PLC0415 - few processes use it
        from gatehouse.app.console.shared import ConsoleServices  # noqa: PLC0415

        console = ConsoleServices(
            services, sign_in_gate=sign_in_gate, readiness=readiness, pages=pages, samples=samples
        )
        return partial(build_section, console)

    sections = [section for section in CONSOLE_PATHS if services.core.dev or section != GALLERY]

    def build(section: str) -> SectionHandlers:
        return load()(section)

    return LazyConsole(build, sign_in_gate, sections=sections)


def game_sockets(services: Services, *, errors: ErrorRenderer, stopping: ShutdownSignal) -> GameSocketEndpoint:
    stopping.when_begun(services.games.presence.stop)
    return GameSocketEndpoint(
        presence=services.games.presence,
        records=services.games.refusals,
        errors=errors,
        limiter=services.limits.requests,
        clock=services.clock,
        base_url=services.base_url,
        sockets_per_source=services.settings.game.sockets_per_source,
    )
