"""GET and POST /proxy/oauth/logout: a client signs a person out (OpenID Connect RP-Initiated Logout, R3)."""

from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.session_model import UserSession
from gatehouse.accounts.sessions import Sessions
from gatehouse.kernel.errors import BadInput
from gatehouse.oauth.errors import BadLogout
from gatehouse.oauth.logout import CheckedLogout, LogoutRequest, LogoutRequests
from gatehouse.oauth.redirects import csp_source
from gatehouse.web.http.browser import Browser, BrowserSessions, is_prefetch
from gatehouse.web.http.context import content_security_policy, origin_of
from gatehouse.web.http.errors import Dialect, request_id_of
from gatehouse.web.http.page_refusals import PageRefusals
from gatehouse.web.http.parse import FORMS, read_form, read_query
from gatehouse.web.http.responses import NO_STORE, see_other
from gatehouse.web.http.routing import Endpoint, HtmlPage, RateClass, RequiredAuth
from gatehouse.web.pages.contexts import BadSignOutContext, SignedOutContext, SignOutContext
from gatehouse.web.pages.forms import CsrfForm, page_endpoint
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer

MAX_QUERY_LENGTH: Final = 8_000  # characters; the whole address stays below the limit for request lines (S-19)
URI_TOO_LONG: Final = 414
SERVICE_UNAVAILABLE: Final = 503


class LogoutDecision(StrEnum):
    CONFIRM = "confirm"
    CANCEL = "cancel"


class LogoutForm(CsrfForm, frozen=True, kw_only=True):
    """The client's parameters are checked again: the sender of the form may have changed them."""

    decision: LogoutDecision
    client_id: str = ""
    post_logout_redirect_uri: str = ""
    state: str = ""

    def logout_request(self) -> LogoutRequest:
        return LogoutRequest(
            client_id=self.client_id, post_logout_redirect_uri=self.post_logout_redirect_uri, state=self.state
        )


class LogoutEndpoints(Struct, kw_only=True, eq=False):
    logouts: LogoutRequests
    sessions: Sessions
    browsers: BrowserSessions
    pages: PageRenderer
    refusals: PageRefusals

    async def handle_get(self, request: Request) -> Response:
        if is_prefetch(request):
            return Response(None, SERVICE_UNAVAILABLE, NO_STORE)
        browser = await self.browsers.read(request)
        try:
            query = read_query(request, LogoutRequest)
            logout = await self.logouts.check(query)
        except BadInput as error:
            return await self._bad_request_page(request, browser, error)
        if browser.signed_in is None:
            return self._signed_out_response(request, logout, returns_to_client=logout.hint is not None)
        if logout.matches_session(browser.signed_in):
            await self._end_session(request, browser.signed_in)
            return self._signed_out_response(request, logout, returns_to_client=True)
        return self._confirmation_page(request, browser, browser.signed_in, query, logout)

    async def handle_head(self, request: Request) -> Response:  # noqa: ARG002 - every HEAD gets the same
        """HEAD has no response body and ends no session."""
        return Response(None, 200, NO_STORE)

    async def handle_post(self, request: Request) -> Response:
        """Redirect a form to the address with the same parameters.

        Browsers do not send the session cookie with another site's POST (SameSite=Lax), but they do with the GET that
        follows.
        """
        asked = await read_form(request, LogoutRequest)
        query = urlencode({name: value for name, value in msgspec.structs.asdict(asked).items() if value})
        if len(query) > MAX_QUERY_LENGTH:
            raise HTTPException(URI_TOO_LONG)
        return see_other(f"{Path.LOGOUT}?{query}")

    async def decide(self, request: Request) -> Response:
        browser = await self.browsers.read(request)
        form = await read_form(request, LogoutForm)
        self.browsers.check_form(request, browser, form.csrf)
        if form.decision is LogoutDecision.CANCEL:
            return see_other(Path.HOME)
        try:
            logout = await self.logouts.check(form.logout_request())
        except BadLogout as error:
            return await self._bad_request_page(request, browser, error)
        if browser.signed_in is not None:
            await self._end_session(request, browser.signed_in)
        return self._signed_out_response(request, logout, returns_to_client=True)

    async def _bad_request_page(self, request: Request, browser: Browser, error: BadInput) -> Response:
        signed_in = browser.signed_in
        actor = "" if signed_in is None else signed_in.user.user_id
        client_id = error.client_id if isinstance(error, BadLogout) else ""
        await self.refusals.add(request, error, actor=actor, client_id=client_id)
        context = BadSignOutContext(
            reference=request_id_of(request.scope),
            reason=str(error),
            csrf="" if signed_in is None else self.browsers.csrf_token(browser),
        )
        return self.browsers.set_browser_cookie(self.pages.render(request, context), browser)

    async def _end_session(self, request: Request, signed_in: UserSession) -> None:
        origin = origin_of(request, signed_in.user.user_id)
        await self.sessions.end(signed_in, signed_in.session.session_id, origin)

    def _signed_out_response(self, request: Request, logout: CheckedLogout, *, returns_to_client: bool) -> Response:
        """Redirect to the client if it requested that and it is allowed.

        Otherwise show a page with a link to the client.
        """
        if logout.redirect_url and returns_to_client:
            return self.browsers.clear_session_cookie(see_other(logout.redirect_url))
        name = logout.client.name if logout.client else ""
        context = SignedOutContext(application=name, return_to=logout.redirect_url)
        return self.browsers.clear_session_cookie(self.pages.render(request, context))

    def _confirmation_page(
        self, request: Request, browser: Browser, signed_in: UserSession, asked: LogoutRequest, logout: CheckedLogout
    ) -> Response:
        context = SignOutContext(
            csrf=self.browsers.csrf_token(browser),
            nick=signed_in.user.nick,
            login=signed_in.user.login or "",
            application=logout.client.name if logout.client else "",
            client_id=logout.client.client_id if logout.client else "",
            post_logout_redirect_uri=asked.post_logout_redirect_uri if logout.redirect_url else "",
            state=asked.state,
        )
        # Browsers apply form-action to redirects after a form too.
        leads_to = [csp_source(asked.post_logout_redirect_uri)] if logout.redirect_url else []
        policy = {"Content-Security-Policy": content_security_policy(form_action=leads_to)}
        return self.browsers.set_browser_cookie(self.pages.render(request, context, headers=policy), browser)

    def endpoints(self) -> list[Endpoint]:
        asked = Endpoint(
            name="oauth.logout",
            path=Path.LOGOUT,
            methods=("GET",),
            handler=self.handle_get,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            section="interface R3",
            summary="Sign a person out (OpenID Connect RP-Initiated Logout)",
            auth=RequiredAuth.SESSION,
            request=LogoutRequest,
            accepts=FORMS,
            answers={200: HtmlPage, 303: None},
        )
        return [
            asked,
            replace(asked, name="oauth.logout_look", methods=("HEAD",), handler=self.handle_head, hidden=True),
            replace(asked, name="oauth.logout_post", methods=("POST",), handler=self.handle_post),
            page_endpoint(
                "POST",
                Path.LOGOUT_CONFIRM,
                self.decide,
                name="oauth.logout_confirm",
                summary="Sign out or stay signed in",
            ),
        ]
