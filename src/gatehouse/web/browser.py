"""The browser at the other end: its cookies, who is signed in with it, and that its forms are its own.

Three cookies: `gh_browser` names the browser and is worth nothing by itself; `gh_session` is the
session; `gh_device` says which login was used here before. Over https all carry `__Host-` and
Secure (R8).
"""

from dataclasses import dataclass
from typing import Final, TypeGuard

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from gatehouse.accounts.model import SignedIn, Strength
from gatehouse.accounts.sessions import Sessions
from gatehouse.kernel.digests import keyed_digest, same_secret
from gatehouse.kernel.errors import Refused
from gatehouse.kernel.ids import new_secret
from gatehouse.web.same_origin import refuse_foreign_page

BROWSER: Final = "gh_browser"
SESSION: Final = "gh_session"
DEVICE: Final = "gh_device"
YEAR: Final = 365 * 86_400
COOKIE_LONGEST: Final = 256
READER_LANG: Final = "reader_lang"  # in the state of a request
PURPOSES: Final = (b"sec-purpose", b"purpose", b"x-moz")


class FormExpired(Refused):
    public = "This form does not belong to this browser session. Reload the page."


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    name: str  # the secret of gh_browser
    is_new: bool
    session: str | None  # the secret of gh_session, live or not
    device: str
    signed_in: SignedIn | None
    agent: str


class Browsers:
    def __init__(self, *, sessions: Sessions, csrf_key: bytes, base_url: str) -> None:
        self._sessions = sessions
        self._csrf_key = csrf_key
        self._base_url = base_url
        self._https = base_url.startswith("https:")
        self._prefix = "__Host-" if self._https else ""

    async def read(self, request: Request) -> Browser:
        cookies = self._cookies(request)
        session = cookies.get(SESSION)
        signed_in = None if session is None else await self._sessions.find(session)
        if signed_in is not None:
            request.scope.setdefault("state", {})[READER_LANG] = signed_in.user.lang
        return Browser(
            name=cookies.get(BROWSER) or new_secret(),
            is_new=BROWSER not in cookies,
            session=session,
            device=cookies.get(DEVICE, ""),
            signed_in=signed_in,
            agent=request.headers.get("user-agent", ""),
        )

    def csrf(self, browser: Browser) -> str:
        """Bound to browser and session: it changes when someone signs in or out."""
        signed_in = browser.signed_in
        session = signed_in.session.digest if signed_in else b""
        return keyed_digest(self._csrf_key, browser.name.encode() + b"\0" + session).hex()

    def check_form(self, request: Request, browser: Browser, csrf: str) -> None:
        """Refuse a form that another site, or another session, made this browser send (S-10, LG-03)."""
        refuse_foreign_page(request, self._base_url)
        if browser.is_new or not same_secret(csrf, self.csrf(browser)):
            raise FormExpired

    def remember(self, response: Response, browser: Browser) -> Response:
        """Name a browser that came without a name."""
        if browser.is_new:
            self._set(response, BROWSER, browser.name, max_age=YEAR)
        return response

    def signed_in(self, response: Response, session: str, device: str = "") -> Response:
        self._set(response, SESSION, session, max_age=None)
        if device:
            self._set(response, DEVICE, device, max_age=YEAR)
        return response

    def signed_out(self, response: Response) -> Response:
        self._set(response, SESSION, "", max_age=0)
        response.headers["Clear-Site-Data"] = '"cache"'
        return response

    def _set(self, response: Response, name: str, value: str, *, max_age: int | None) -> None:
        response.set_cookie(
            self._prefix + name, value, max_age=max_age, path="/", secure=self._https, httponly=True, samesite="lax"
        )

    def _cookies(self, request: Request) -> dict[str, str]:
        """Ours by their bare names; one that is empty, too long or sent twice is none."""
        ours: dict[str, str] = {}
        for pair in "; ".join(request.headers.getlist("cookie")).split("; "):
            name, _, value = pair.partition("=")
            bare = name.removeprefix(self._prefix)
            if name != self._prefix + bare or bare not in (BROWSER, SESSION, DEVICE):
                continue
            ours[bare] = "" if bare in ours or len(value) > COOKIE_LONGEST else value
        return {name: value for name, value in ours.items() if value}


def is_full(signed_in: SignedIn | None) -> TypeGuard[SignedIn]:
    """Whether somebody is, and not by a short-lived token (R1)."""
    return signed_in is not None and signed_in.session.strength is Strength.FULL


def reader_lang(scope: Scope) -> str:
    """The language of the account that is signed in, as far as this request's browser was read."""
    return str(scope.get("state", {}).get(READER_LANG, ""))


def is_prefetch(request: Request) -> bool:
    """A browser that reads ahead is not a person who goes there (AZ-30)."""
    headers: list[tuple[bytes, bytes]] = request.scope["headers"]
    return any(name in PURPOSES and b"prefetch" in purpose.lower() for name, purpose in headers)
