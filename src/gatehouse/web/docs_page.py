"""The API documentation as a page that works offline: Swagger UI, vendored, no inline script."""

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web import openapi
from gatehouse.web.dialects import Dialect
from gatehouse.web.middleware.security_headers import content_security_policy
from gatehouse.web.responses import cacheable
from gatehouse.web.routes.table import Endpoint, RateClass
from gatehouse.web.static import Assets

PATH: Final = "/docs"
BUNDLE: Final = "vendor/swagger-ui/swagger-ui-bundle.js"
STYLE: Final = "vendor/swagger-ui/swagger-ui.css"
START: Final = "docs.js"
ICON: Final = "mark.svg"

# The policy of every other page and pictures as data: Swagger UI's style sheet carries its own (S-08).
POLICY: Final = content_security_policy(images=["data:"])


def endpoints(
    table: Sequence[Endpoint], *, assets: Assets, base_url: str, version: str, demo: bool = False
) -> list[Endpoint]:
    """`/openapi.json` of that table, and the page that shows it."""
    document = partial(openapi.document, tuple(table), base_url=base_url, version=version)
    page = page_of(assets, demo=demo).encode()

    async def serve(request: Request) -> Response:
        response = cacheable(request, page, media_type="text/html; charset=utf-8", cache_control="no-cache")
        response.headers["Content-Security-Policy"] = POLICY
        return response

    shown = Endpoint(
        name="docs",
        path=PATH,
        methods=("GET",),
        handler=serve,
        dialect=Dialect.PAGE,
        rate_class=RateClass.PUBLIC,
        section="operations",
        summary="API documentation page",
        hidden=True,
    )
    return [openapi.endpoint_for(document), shown]


def page_of(assets: Assets, *, demo: bool = False) -> str:
    title = "Gatehouse API (Demo)" if demo else "Gatehouse API"
    mark = '<p role="note"><strong>Demo</strong></p>\n' if demo else ""
    icon, style, bundle, start = (escape(assets.address(name)) for name in (ICON, STYLE, BUNDLE, START))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n"
        f'<link rel="icon" href="{icon}">\n<link rel="stylesheet" href="{style}">\n'
        f'<script src="{bundle}" defer></script>\n<script src="{start}" defer></script>\n'
        f'</head>\n<body>\n{mark}<main id="api" data-document="{openapi.PATH}"></main>\n</body>\n</html>\n'
    )
