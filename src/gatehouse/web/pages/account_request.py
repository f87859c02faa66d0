"""Requests to the account pages: notices, authentication, forms and reauthentication.

A notice about a completed action is carried in a cookie to the next page and shown there once. It is not in the
address, so that no link can make a page claim something.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar
from urllib.parse import parse_qs, urlencode

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import User
from gatehouse.accounts.session_model import Session, UserSession
from gatehouse.accounts.sessions import Sessions
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.digests import sha256
from gatehouse.sign_in_flow.account_sign_in import ACCOUNT_KIND, RETURN_TO
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.web.console.paths import is_console_page
from gatehouse.web.http.browser import Browser, BrowserSessions, device_name, is_full_session
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import read_form, read_upload
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import UPLOAD_BODY_LIMIT, Endpoint, Handler, RateClass, RequiredAuth
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.vocabulary import NOTICE_SECTIONS, AccountSection, Notice

NOTICE_COOKIE: Final = "gh_notice"
NOTICE_SECONDS: Final = 60  # seconds; the next request reads it
NOTICES_BY_VALUE: Final = {notice.value: notice for notice in Notice}


class NoticeCookie:
    def __init__(self, *, https: bool) -> None:
        self._https = https
        self._name = f"__Host-{NOTICE_COOKIE}" if https else NOTICE_COOKIE  # R8: plain names on loopback

    def set(self, response: Response, notice: Notice) -> Response:
        self._set_cookie(response, notice.value, NOTICE_SECONDS)
        return response

    def read(self, request: Request) -> Notice | None:
        return NOTICES_BY_VALUE.get(request.cookies.get(self._name, ""))

    def clear(self, response: Response) -> Response:
        self._set_cookie(response, "", 0)
        return response

    def _set_cookie(self, response: Response, value: str, max_age: int) -> None:
        response.set_cookie(
            self._name, value, max_age=max_age, path="/", secure=self._https, httponly=True, samesite="lax"
        )


# What every account page shares: unauthenticated requests are redirected to the sign-in, a form must come from this
# browser (LG-03), and an action that changes how a person signs in requires recent authentication.


Form = TypeVar("Form", bound=CsrfForm)


class AccountRequest(Struct, frozen=True, kw_only=True):
    """A request of a signed-in person."""

    browser: Browser
    signed_in: UserSession
    origin: AuditOrigin
    source: str  # as rate limits count it

    @property
    def user(self) -> User:
        return self.signed_in.user

    @property
    def session(self) -> Session:
        return self.signed_in.session

    @property
    def device(self) -> str:
        return device_name(self.browser.agent)

    @property
    def browser_digest(self) -> bytes:
        return sha256(self.browser.browser_id)


PageHandler = Callable[[Request, AccountRequest], Awaitable[Response]]
UploadHandler = Callable[[Request, AccountRequest, bytes], Awaitable[Response]]
FormHandler = Callable[[Request, AccountRequest, Form], Awaitable[Response]]


def section_address(section: AccountSection) -> str:
    return f"{Path.ACCOUNT}#{section}"


# Where reauthentication returns to: a page, or the part of the account page that has the button. The list is
# closed, so that no request can name another address (LG-04).
RETURN_ADDRESSES: Final[Mapping[str, str]] = {
    Path.TOTP: Path.TOTP,
    Path.PASSKEY: Path.PASSKEY,
    Path.DELETE: Path.DELETE,
    Path.INVITATIONS: Path.INVITATIONS,
    Path.DOCS_SESSION: Path.DOCS,
    Path.EMAIL: section_address(AccountSection.EMAIL),
    Path.PHONE: section_address(AccountSection.PHONE),
    Path.PHONE_CODE: section_address(AccountSection.PHONE),
    Path.PHONE_REMOVE: section_address(AccountSection.PHONE),
    Path.USERNAME: section_address(AccountSection.PROFILE),
    Path.PASSWORD: section_address(AccountSection.PASSWORD),
    Path.TOTP_REMOVE: section_address(AccountSection.FACTORS),
    Path.PASSKEY_REMOVE: section_address(AccountSection.FACTORS),
    Path.EMAIL_CODE: section_address(AccountSection.FACTORS),
    Path.PHONE_FACTOR: section_address(AccountSection.FACTORS),
    Path.PHONE_FACTOR_OPEN: section_address(AccountSection.FACTORS),
    Path.RECOVERY_CODES: section_address(AccountSection.FACTORS),
    Path.IDENTITY_CONNECT: section_address(AccountSection.IDENTITIES),
    Path.IDENTITY_REMOVE: section_address(AccountSection.IDENTITIES),
    Path.SESSION_END: section_address(AccountSection.SESSIONS),
    Path.SESSIONS_END_OTHERS: section_address(AccountSection.SESSIONS),
    Path.GRANT_END: section_address(AccountSection.APPLICATIONS),
    Path.APPLICATION_REVOKE: section_address(AccountSection.APPLICATIONS),
}


# The pages that set up a second factor return to the console page that asked for it.
FACTOR_SETUP_PAGES: Final = (Path.TOTP, Path.PASSKEY)


def setup_address(path: Path, next_page: str) -> str:
    """Return the address of a page that sets up a factor and then continues with `next_page`, if it is our own."""
    return f"{path}?{urlencode({'next': next_page})}" if is_console_page(next_page) else path


def next_of_setup(address: str) -> str:
    """Return the page that such an address continues with; empty for any other."""
    path, _, query = address.partition("?")
    wanted = parse_qs(query).get("next", [""])[0]
    return wanted if path in FACTOR_SETUP_PAGES and is_console_page(wanted) else ""


def page_to_return_to(request: Request, path: Path) -> str:
    if path not in FACTOR_SETUP_PAGES:
        return path
    return setup_address(path, request.query_params.get("next", ""))


class AccountView(Struct, kw_only=True, eq=False):
    browsers: BrowserSessions
    sessions: Sessions
    sign_in_flows: SignInFlows
    pages: PageRenderer
    notices: NoticeCookie

    def page(self, path: Path, show: PageHandler, *, name: str, summary: str, fresh: bool = False) -> Endpoint:
        """Wrap a handler that shows a page to the account's owner; a sign-in leads back to it."""

        async def handler(request: Request) -> Response:
            browser = await self.browsers.read(request)
            account = self.request_of(request, browser)
            if account is None:
                return await self._sign_in_first(browser, page_to_return_to(request, path))
            if fresh and not self.is_fresh(account):
                return self.reauthenticate(page_to_return_to(request, path))
            return await show(request, account)

        return account_endpoint("GET", path, handler, name=name, summary=summary)

    def form(
        self,
        path: Path,
        into: type[Form],
        act: FormHandler[Form],
        *,
        name: str,
        summary: str,
        fresh: bool = False,
        rate_class: RateClass = RateClass.PUBLIC,
    ) -> Endpoint:
        """Wrap a handler that does something for the account's owner."""

        async def handler(request: Request) -> Response:
            account = await self._account_request(request)
            if account is None:
                return see_other(Path.SIGN_IN)
            form = await read_form(request, into)
            self.browsers.check_form(request, account.browser, form.csrf)
            if fresh and not self.is_fresh(account):
                return self.reauthenticate(path)
            return await act(request, account, form)

        return account_endpoint("POST", path, handler, name=name, summary=summary, rate_class=rate_class)

    def upload(self, path: Path, act: UploadHandler, *, field: str, name: str, summary: str) -> Endpoint:
        """Wrap a handler that takes one file from the account's owner; it works without JavaScript."""

        async def handler(request: Request) -> Response:
            account = await self._account_request(request)
            if account is None:
                return see_other(Path.SIGN_IN)
            form, content = await read_upload(request, CsrfForm, field)
            self.browsers.check_form(request, account.browser, form.csrf)
            return await act(request, account, content)

        endpoint = account_endpoint("POST", path, handler, name=name, summary=summary, rate_class=RateClass.LOGIN)
        return replace(endpoint, body_limit=UPLOAD_BODY_LIMIT)

    async def _sign_in_first(self, browser: Browser, address: str) -> Response:
        if address not in RETURN_ADDRESSES and next_of_setup(address) == "":
            return see_other(Path.SIGN_IN)
        handle = await self.sign_in_flows.start(ACCOUNT_KIND, {RETURN_TO: address}, browser=browser.browser_id)
        response = see_other(f"{Path.SIGN_IN}?{urlencode({'interaction': handle})}")
        return self.browsers.set_browser_cookie(response, browser)

    def is_fresh(self, account: AccountRequest) -> bool:
        return self.sessions.is_fresh(account.signed_in)

    def reauthenticate(self, path: str) -> Response:
        return see_other(f"{Path.CONFIRM}?{urlencode({'next': path})}")

    def csrf_token(self, account: AccountRequest) -> str:
        return self.browsers.csrf_token(account.browser)

    def show(self, request: Request, context: PageContext, *, status: int | None = None) -> Response:
        return self.pages.render_off_loop(request, lambda: context, status=status or context.status)

    def redirect_with_notice(self, notice: Notice) -> Response:
        """Redirect to a part of the account page, which shows the notice once."""
        return self.notices.set(see_other(section_address(NOTICE_SECTIONS[notice])), notice)

    async def _account_request(self, request: Request) -> AccountRequest | None:
        """Return the request; None without a session, or with a limited one, which is for applications (R1)."""
        browser = await self.browsers.read(request)
        return self.request_of(request, browser)

    def request_of(self, request: Request, browser: Browser) -> AccountRequest | None:
        """Return the same for a browser that was read already."""
        signed_in = browser.signed_in
        if not is_full_session(signed_in):
            return None
        return AccountRequest(
            browser=browser,
            signed_in=signed_in,
            origin=origin_of(request, signed_in.user.user_id),
            source=caller_address_of(request.scope).source,
        )


def account_endpoint(
    method: str,
    path: Path,
    handler: Handler,
    *,
    name: str,
    summary: str,
    rate_class: RateClass = RateClass.PUBLIC,
) -> Endpoint:
    return Endpoint(
        name=name,
        path=path,
        methods=(method,),
        handler=handler,
        dialect=Dialect.PAGE,
        rate_class=rate_class,
        section="pages",
        summary=summary,
        auth=RequiredAuth.SESSION,
        hidden=True,
    )
