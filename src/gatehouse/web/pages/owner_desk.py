"""Where people deal with their own accounts: what every act there shares, so that none can forget it.

Whoever is not signed in is sent to the sign-in; a form must be this browser's own (LG-03); and an act that
changes how one signs in needs a fresh proof, or it leads to the page that asks for one.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import Session, SignedIn, Strength, User
from gatehouse.accounts.sessions import Sessions
from gatehouse.audit.model import Origin
from gatehouse.kernel.digests import sha256
from gatehouse.web.agents import device_of
from gatehouse.web.browser import Browser, Browsers
from gatehouse.web.dialects import Dialect
from gatehouse.web.middleware.client_address import caller_of
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.pages.notices import Notices
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.vocabulary import SAID_IN, Notice, Section
from gatehouse.web.parse import read_form
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Auth, Endpoint, Handler, RateClass

Form = TypeVar("Form", bound=Guarded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request of somebody who is signed in."""

    browser: Browser
    signed_in: SignedIn
    origin: Origin
    source: str  # as throttles count it

    @property
    def user(self) -> User:
        return self.signed_in.user

    @property
    def session(self) -> Session:
        return self.signed_in.session

    @property
    def device(self) -> str:
        return device_of(self.browser.agent)

    @property
    def browser_digest(self) -> bytes:
        return sha256(self.browser.name)


Show = Callable[[Request, Visit], Awaitable[Response]]
Act = Callable[[Request, Visit, Form], Awaitable[Response]]


def place(section: Section) -> str:
    return f"{Path.ACCOUNT}#{section}"


# Where a fresh proof leads back to: a page of its own, or the part of the account page that has the button.
# Closed, so that no request can name another address (LG-04).
BACK_TO: Final[Mapping[str, str]] = {
    Path.TOTP: Path.TOTP,
    Path.PASSKEY: Path.PASSKEY,
    Path.DELETE: Path.DELETE,
    Path.EMAIL: place(Section.EMAIL),
    Path.PASSWORD: place(Section.PASSWORD),
    Path.TOTP_REMOVE: place(Section.FACTORS),
    Path.PASSKEY_REMOVE: place(Section.FACTORS),
    Path.EMAIL_CODE: place(Section.FACTORS),
    Path.RECOVERY_CODES: place(Section.FACTORS),
    Path.SESSION_END: place(Section.SESSIONS),
    Path.SESSIONS_END_OTHERS: place(Section.SESSIONS),
    Path.APPLICATION_REVOKE: place(Section.APPLICATIONS),
}


class OwnerDesk:
    def __init__(self, *, browsers: Browsers, sessions: Sessions, pages: Pages, notices: Notices) -> None:
        self._browsers = browsers
        self._sessions = sessions
        self._pages = pages
        self._notices = notices

    def shown(self, path: Path, show: Show, *, name: str, summary: str, fresh: bool = False) -> Endpoint:
        """An endpoint that shows its owner something."""

        async def handler(request: Request) -> Response:
            visit = await self._visit(request)
            if visit is None:
                return see_other(Path.SIGN_IN)
            if fresh and not self.is_fresh(visit):
                return self.ask_again(path)
            return await show(request, visit)

        return _endpoint("GET", path, handler, name=name, summary=summary)

    def posted(
        self,
        path: Path,
        into: type[Form],
        act: Act[Form],
        *,
        name: str,
        summary: str,
        fresh: bool = False,
        rate_class: RateClass = RateClass.PUBLIC,
    ) -> Endpoint:
        """An endpoint that does something for its owner."""

        async def handler(request: Request) -> Response:
            visit = await self._visit(request)
            if visit is None:
                return see_other(Path.SIGN_IN)
            form = await read_form(request, into)
            self._browsers.check_form(request, visit.browser, form.csrf)
            if fresh and not self.is_fresh(visit):
                return self.ask_again(path)
            return await act(request, visit, form)

        return _endpoint("POST", path, handler, name=name, summary=summary, rate_class=rate_class)

    def is_fresh(self, visit: Visit) -> bool:
        return self._sessions.is_fresh(visit.session)

    def ask_again(self, path: str) -> Response:
        return see_other(f"{Path.CONFIRM}?{urlencode({'next': path})}")

    def csrf(self, visit: Visit) -> str:
        return self._browsers.csrf(visit.browser)

    def show(self, request: Request, context: PageContext, *, status: int | None = None) -> Response:
        return self._pages.show_off_loop(request, lambda: context, status=status or context.status)

    def done(self, notice: Notice) -> Response:
        """Back to the part of the account page that says once what was done."""
        return self._notices.leave(see_other(place(SAID_IN[notice])), notice)

    async def _visit(self, request: Request) -> Visit | None:
        """None for a stranger, and for a session that signs in to applications only (R1)."""
        browser = await self._browsers.read(request)
        signed_in = browser.signed_in
        if signed_in is None or signed_in.session.strength is not Strength.FULL:
            return None
        return Visit(
            browser=browser,
            signed_in=signed_in,
            origin=origin_of(request, signed_in.user.user_id),
            source=caller_of(request.scope).source,
        )


def _endpoint(
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
        auth=Auth.SESSION,
        hidden=True,
    )
