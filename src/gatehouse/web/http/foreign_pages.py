"""A state-changing request from a browser must come from one of our own pages (S-10)."""

from typing import Final

from starlette.requests import Request

from gatehouse.kernel.errors import Refused

OWN_SITE_VALUES: Final = frozenset({"same-origin", "none"})  # none: the person typed or bookmarked the address


class ForeignPage(Refused):
    public = "This form was sent from another site."


def refuse_foreign_page(request: Request, base_url: str) -> None:
    """Raise ForeignPage when the browser says, by Sec-Fetch-Site or Origin, that another page sent this.

    Our pages forbid the referrer, and then browsers send `Origin: null` with their own forms too: null counts as ours
    only beside a Sec-Fetch-Site that says so. A caller that sends neither header is not a browser and has no session
    that a foreign page could use.
    """
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site")
    if site is not None and site not in OWN_SITE_VALUES:
        raise ForeignPage(f"Sec-Fetch-Site {site!r}")
    if origin is None or origin == base_url or (origin == "null" and site is not None):
        return
    raise ForeignPage(f"Origin {origin!r}")
