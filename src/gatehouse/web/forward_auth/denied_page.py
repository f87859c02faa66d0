"""The page that a site shows to a person without the permission.

No other file of this service can be loaded there.
"""

import base64
import hashlib
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.forward_auth.sign_in import DENIED_PATH, SITE_KEY
from gatehouse.permissions.model.protected_site import ProtectedSite
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.rendering import PageRenderer

DENIED_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1rem}"
    "@media(prefers-color-scheme:dark){body{background:#13171f;color:#c2c7d0}a{color:#7aa2f7}}"
)
DENIED_POLICY: Final = (
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; style-src 'sha256-"
    f"{base64.b64encode(hashlib.sha256(DENIED_STYLE.encode()).digest()).decode()}'"
)


class SiteDeniedContext(PageContext, frozen=True, kw_only=True):
    template = "site_denied.html"
    status = 403

    application: str  # the host of the site
    login: str
    style: str
    more: str  # address of the same page here, with the people to ask


class SiteDeniedPage(Struct, kw_only=True, eq=False):
    pages: PageRenderer
    base_url: str

    def render(self, request: Request, site: ProtectedSite, login: str) -> Response:
        context = SiteDeniedContext(
            application=host_of(site.origin),
            login=login,
            style=DENIED_STYLE,
            more=f"{self.base_url}{DENIED_PATH}?{urlencode({SITE_KEY: site.origin})}",
        )
        return self.pages.render(request, context, headers={"Content-Security-Policy": DENIED_POLICY})


def host_of(origin: str) -> str:
    return origin.partition("://")[2]
