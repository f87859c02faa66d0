"""The request that a reverse proxy asks about: X-Forwarded-Host, -Proto, -Uri and -Method (R9).

They count only from the operator's own proxies (server.trusted_proxies), and each is read whole or not at all. No
other endpoint reads them: everywhere else the service's own address comes from `base_url`.
"""

from typing import Final

from msgspec import Struct
from starlette.requests import Request

from gatehouse.forward_auth.model import is_site_path
from gatehouse.kernel.errors import Refused
from gatehouse.kernel.web_urls import parse_web_url
from gatehouse.permissions.documents.sites import origin_text
from gatehouse.web.http.client_address import FOREIGN_SITE_KEY, caller_address_of
from gatehouse.web.http.request_headers import header_values

SAFE_METHODS: Final = frozenset({"GET", "HEAD", ""})


class UntrustedProxy(Refused):
    public = "This request must come from a reverse proxy that the service trusts (server.trusted_proxies)."


class UnreadableForwarding(Refused):
    public = "X-Forwarded-Host and X-Forwarded-Proto must each name one value."


class ForwardedRequest(Struct, frozen=True, kw_only=True):
    origin: str  # that the browser shows
    path: str  # path and query there; "/" for one that no redirect may lead to
    is_navigation: bool  # a person opened a page, rather than a script or an image


def read_forwarded_request(request: Request) -> ForwardedRequest:
    """Read what the proxy says about the original request. Raises UntrustedProxy, UnreadableForwarding."""
    if not caller_address_of(request.scope).by_proxy:
        raise UntrustedProxy
    request.scope["state"][FOREIGN_SITE_KEY] = True
    hosts, protos, methods, uris = (
        header_values(request.scope, name)
        for name in (b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-method", b"x-forwarded-uri")
    )
    url = parse_web_url(f"{protos[0]}://{hosts[0].lower()}") if len(hosts) == len(protos) == 1 else None
    if url is None or url.target or url.fragment:
        raise UnreadableForwarding
    path = uris[0] if len(uris) == 1 and is_site_path(uris[0]) else "/"
    safe = len(methods) < 2 and set(methods) <= SAFE_METHODS  # noqa: PLR2004 - one, or none from nginx
    return ForwardedRequest(origin=origin_text(url), path=path, is_navigation=safe and asks_for_page(request))


def asks_for_page(request: Request) -> bool:
    """Whether the browser opens a page: it says so by Sec-Fetch-Mode, an older one by Accept."""
    mode = request.headers.get("sec-fetch-mode")
    if mode is not None:
        return mode == "navigate"
    return "text/html" in request.headers.get("accept", "")
