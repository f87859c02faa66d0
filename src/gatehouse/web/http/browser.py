"""Reads a User-Agent header as a short device name: "Firefox, Linux"."""

from typing import Final, TypeGuard

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from gatehouse.accounts.field_checks import time_zones
from gatehouse.accounts.model import SessionStrength
from gatehouse.accounts.session_model import UserSession
from gatehouse.accounts.sessions import Sessions
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256
from gatehouse.kernel.errors import Refused
from gatehouse.kernel.ids import new_secret
from gatehouse.kernel.times import DAY
from gatehouse.web.http.foreign_pages import refuse_foreign_page

# The first match counts: Edge and Opera also contain Chrome, and Chrome also contains Safari.
BROWSER_NAMES: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
SYSTEM_NAMES: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def device_name(agent: str) -> str:
    """Return the short name of a browser, the same in every language; empty when the header is unknown."""
    browser = next((name for mark, name in BROWSER_NAMES if mark in agent), "")
    system = next((name for mark, name in SYSTEM_NAMES if mark in agent), "")
    return ", ".join(part for part in (browser, system) if part)


# The browser of a request: its cookies, its session, and the CSRF check of its forms.
#
# There are five cookies: `gh_browser` identifies the browser and gives no access; `gh_session` is the session;
# `gh_device` records which logins were used here before; `gh_age` that a person was too young, for a day; `gh_stay`
# the choice to stay signed in, which a script may set as well. Over https all carry `__Host-` and Secure (R8).


BROWSER_COOKIE: Final = "gh_browser"
SESSION_COOKIE: Final = "gh_session"
DEVICE_COOKIE: Final = "gh_device"
AGE_COOKIE: Final = "gh_age"
STAY_COOKIE: Final = "gh_stay"
ZONE_COOKIE: Final = "gh_zone"  # set by static/console.js; no secret
STAY_VALUE: Final = "1"
OWN_COOKIES: Final = frozenset({BROWSER_COOKIE, SESSION_COOKIE, DEVICE_COOKIE, AGE_COOKIE, STAY_COOKIE})
YEAR_SECONDS: Final = 365 * 86_400
MAX_COOKIE_LENGTH: Final = 1_024  # gh_device has a part for each of five people
SIGNED_IN_LANG_KEY: Final = "reader_lang"  # the keys in the state of a request
SIGNED_IN_ZONE_KEY: Final = "reader_zone"
PREFETCH_HEADERS: Final = (b"sec-purpose", b"purpose", b"x-moz")


class FormExpired(Refused):
    public = "This form does not belong to this browser session. Reload the page."


class Browser(Struct, frozen=True, kw_only=True):
    browser_id: str  # the secret of gh_browser
    is_new: bool
    session: str | None  # the secret of gh_session, live or not
    device: str
    age: str = ""  # of gh_age, signed
    signed_in: UserSession | None
    agent: str
    stays: bool = False  # the person chose to stay signed in
    zone: str = ""  # the time zone of the browser, if the console knows it


class BrowserSessions:
    def __init__(self, *, sessions: Sessions, csrf_key: bytes, base_url: str) -> None:
        self._sessions = sessions
        self._csrf_key = csrf_key
        self._base_url = base_url
        self._https = base_url.startswith("https:")
        self._prefix = "__Host-" if self._https else ""

    async def read(self, request: Request) -> Browser:
        cookies = self._own_cookies(request)
        session = cookies.get(SESSION_COOKIE)
        signed_in = None if session is None else await self._sessions.find(session)
        zone = browser_zone(request)
        if signed_in is not None:
            state = request.scope.setdefault("state", {})
            state[SIGNED_IN_LANG_KEY] = signed_in.user.lang
            state[SIGNED_IN_ZONE_KEY] = signed_in.user.zoneinfo or zone
        return Browser(
            browser_id=cookies.get(BROWSER_COOKIE) or new_secret(),
            is_new=BROWSER_COOKIE not in cookies,
            session=session,
            device=cookies.get(DEVICE_COOKIE, ""),
            age=cookies.get(AGE_COOKIE, ""),
            signed_in=signed_in,
            agent=request.headers.get("user-agent", ""),
            stays=cookies.get(STAY_COOKIE) == STAY_VALUE,
            zone=zone,
        )

    def csrf_token(self, browser: Browser) -> str:
        """The CSRF token, bound to browser and session: it changes when a person signs in or out."""
        signed_in = browser.signed_in
        session = signed_in.session.digest if signed_in else b""
        return hmac_sha256(self._csrf_key, browser.browser_id.encode() + b"\0" + session).hex()

    def check_form(self, request: Request, browser: Browser, csrf: str) -> None:
        """Refuse a form that another site, or another session, made this browser send (S-10, LG-03)."""
        refuse_foreign_page(request, self._base_url)
        if browser.is_new or not constant_time_equal(csrf, self.csrf_token(browser)):
            raise FormExpired

    def set_browser_cookie(self, response: Response, browser: Browser) -> Response:
        """Set gh_browser for a browser that does not have it."""
        if browser.is_new:
            self._set_cookie(response, BROWSER_COOKIE, browser.browser_id, max_age=YEAR_SECONDS)
        return response

    def set_session_cookie(
        self, response: Response, session: str, device: str = "", *, stays: bool = False
    ) -> Response:
        """Set the cookie of a session; unless the person stays signed in, it ends with the browser."""
        self._set_cookie(response, SESSION_COOKIE, session, max_age=YEAR_SECONDS if stays else None)
        if device:
            self._set_cookie(response, DEVICE_COOKIE, device, max_age=YEAR_SECONDS)
        return response

    @property
    def stay_cookie(self) -> str:
        return self._prefix + STAY_COOKIE

    def set_stay_cookie(self, response: Response, *, stays: bool) -> Response:
        response.set_cookie(
            self.stay_cookie,
            STAY_VALUE if stays else "",
            max_age=YEAR_SECONDS if stays else 0,
            path="/",
            secure=self._https,
            samesite="lax",
        )
        return response

    def set_age_cookie(self, response: Response, age: str) -> Response:
        self._set_cookie(response, AGE_COOKIE, age, max_age=DAY)
        return response

    def clear_session_cookie(self, response: Response) -> Response:
        self._set_cookie(response, SESSION_COOKIE, "", max_age=0)
        response.headers["Clear-Site-Data"] = '"cache"'
        return response

    def _set_cookie(self, response: Response, name: str, value: str, *, max_age: int | None) -> None:
        response.set_cookie(
            self._prefix + name, value, max_age=max_age, path="/", secure=self._https, httponly=True, samesite="lax"
        )

    def _own_cookies(self, request: Request) -> dict[str, str]:
        """Return our cookies by their names without prefix.

        Those that are empty, too long or sent twice are ignored.
        """
        ours: dict[str, str] = {}
        for pair in "; ".join(request.headers.getlist("cookie")).split("; "):
            name, _, value = pair.partition("=")
            bare = name.removeprefix(self._prefix)
            if name != self._prefix + bare or bare not in OWN_COOKIES:
                continue
            ours[bare] = "" if bare in ours or len(value) > MAX_COOKIE_LENGTH else value
        return {name: value for name, value in ours.items() if value}


def is_full_session(signed_in: UserSession | None) -> TypeGuard[UserSession]:
    """Whether a person is signed in, and not by a short-lived token (R1)."""
    return signed_in is not None and signed_in.session.strength is SessionStrength.FULL


def browser_zone(request: Request) -> str:
    """Return the time zone that a script of the console found; empty without one, or for an unknown one."""
    name = request.cookies.get(ZONE_COOKIE, "")
    return name if name in time_zones() else ""


def signed_in_lang(scope: Scope) -> str:
    """The language of the signed-in account; empty if the browser of this request was not read yet."""
    return str(scope.get("state", {}).get(SIGNED_IN_LANG_KEY, ""))


def signed_in_zone(scope: Scope) -> str:
    """The time zone of the signed-in account, else of its browser; empty where none is known."""
    return str(scope.get("state", {}).get(SIGNED_IN_ZONE_KEY, ""))


def is_prefetch(request: Request) -> bool:
    """Whether the browser only prefetches the page, so that no person has opened it (AZ-30)."""
    headers: list[tuple[bytes, bytes]] = request.scope["headers"]
    return any(name in PREFETCH_HEADERS and b"prefetch" in purpose.lower() for name, purpose in headers)
