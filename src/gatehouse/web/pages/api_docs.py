"""The API documentation as a page that works offline: Swagger UI, vendored, no inline script."""

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.web.http import openapi
from gatehouse.web.http.context import content_security_policy
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import cacheable_response
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.assets import Assets

DOCS_PATH: Final = "/docs"
SCRIPT_FILE: Final = "vendor/swagger-ui/swagger-ui-bundle.js"
STYLE_FILES: Final = ("vendor/swagger-ui/swagger-ui.css", "tokens.css", "docs.css")  # later ones win
START_SCRIPT_FILE: Final = "docs.js"
ICON_FILE: Final = "mark.svg"

# The policy of other pages plus data: images, which Swagger UI's style sheet contains (S-08).
DOCS_POLICY: Final = content_security_policy(images=["data:"])


def docs_endpoints(
    table: Sequence[Endpoint], *, assets: Assets, base_url: str, version: str, demo: bool = False
) -> list[Endpoint]:
    """Return the endpoints of `/openapi.json` for these routes, and of the page that shows it."""
    document = partial(openapi.openapi_document, tuple(table), base_url=base_url, version=version)
    page = docs_page_html(assets, demo=demo).encode()

    async def serve(request: Request) -> Response:
        response = cacheable_response(request, page, media_type="text/html; charset=utf-8", cache_control="no-cache")
        response.headers["Content-Security-Policy"] = DOCS_POLICY
        return response

    shown = Endpoint(
        name="docs",
        path=DOCS_PATH,
        methods=("GET",),
        handler=serve,
        dialect=Dialect.PAGE,
        rate_class=RateClass.PUBLIC,
        section="operations",
        summary="API documentation page",
        hidden=True,
    )
    return [openapi.document_endpoint(document), shown]


def docs_page_html(assets: Assets, *, demo: bool = False) -> str:
    title = "Gatehouse API (Demo)" if demo else "Gatehouse API"
    mark = '<p role="note"><strong>Demo</strong></p>\n' if demo else ""
    icon, bundle, start = (escape(assets.address(name)) for name in (ICON_FILE, SCRIPT_FILE, START_SCRIPT_FILE))
    styles = "".join(f'<link rel="stylesheet" href="{escape(assets.address(name))}">\n' for name in STYLE_FILES)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n"
        f'<link rel="icon" href="{icon}">\n{styles}'
        f'<script src="{bundle}" defer></script>\n<script src="{start}" defer></script>\n'
        f'</head>\n<body>\n{mark}<main id="api" data-document="{openapi.OPENAPI_PATH}"></main>\n</body>\n</html>\n'
    )
