"""A state-changing request from a browser must come from one of our own pages (S-10)."""

from typing import Final

from starlette.requests import Request

from gatehouse.kernel.errors import Refused

OWN_SITE: Final = frozenset({"same-origin", "none"})  # none: typed or bookmarked by the person himself


class ForeignPage(Refused):
    public = "This form was sent from another site."


def refuse_foreign_page(request: Request, base_url: str) -> None:
    """Raise ForeignPage unless Origin and Sec-Fetch-Site, where the browser sends them, name us."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site")
    if origin is not None and origin != base_url:
        raise ForeignPage(f"Origin {origin!r}")
    if site is not None and site not in OWN_SITE:
        raise ForeignPage(f"Sec-Fetch-Site {site!r}")
