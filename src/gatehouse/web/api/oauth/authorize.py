"""The authorize endpoint, and its page for a request with an unknown client or a redirect URI that is not its own."""

from typing import Final, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import SessionStrength
from gatehouse.kernel.errors import TooMany
from gatehouse.oauth.authorize.purpose import KIND, encode_request
from gatehouse.oauth.authorize.request import AuthorizationRequest, AuthorizeParameters, Prompt
from gatehouse.oauth.authorize.service import AuthorizeService, NextStep, ReceivedRequest
from gatehouse.oauth.errors import AuthorizeRefused, InteractionRequired, NotLetIn, NotRedirected
from gatehouse.oauth.metadata_clients import DocumentCaller
from gatehouse.oauth.model import Client
from gatehouse.oauth.vocabulary import ResponseMode
from gatehouse.permissions.login_rules import LoginRules
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import Continuation, FlowStep, proof_of_session
from gatehouse.throttle.pending_sign_ins import AUTHORIZE_LIMIT_KEY
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.http import parse_form
from gatehouse.web.http.browser import Browser, BrowserSessions, is_prefetch
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect, request_id_of
from gatehouse.web.http.page_refusals import PageRefusals
from gatehouse.web.http.parse import BodyKind, content_type, query_pairs, raw_body
from gatehouse.web.http.responses import NO_STORE, see_other
from gatehouse.web.http.routing import Endpoint, HtmlPage, RateClass, RequiredAuth
from gatehouse.web.pages.access_denied import AccessDeniedPage
from gatehouse.web.pages.contexts import ClientErrorContext, RegisteredTarget
from gatehouse.web.pages.continuation import continue_browser
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in_flow import continue_flow, pack_request, step_address


class ClientErrorPage(Struct, kw_only=True, eq=False):
    rules: LoginRules
    pages: PageRenderer
    refusals: PageRefusals

    async def show(self, request: Request, browser: Browser, refused: NotRedirected) -> Response:
        """Show an error text; administrators also see the received address beside the registered ones."""
        actor = "" if browser.signed_in is None else browser.signed_in.user.user_id
        received = refused.received.partition("?")[0]  # what follows may have values of a person
        await self.refusals.add(request, refused, actor=actor, client_id=refused.client_id, received=received)
        context = ClientErrorContext(
            reference=request_id_of(request.scope),
            application=refused.client.name if refused.client else "",
        )
        if await self._may_see_details(browser, refused):
            context = with_details(context, refused)
        return self.pages.render(request, context)

    async def _may_see_details(self, browser: Browser, refused: NotRedirected) -> bool:
        if refused.client is not None and refused.client.explain_errors:
            return True
        signed_in = browser.signed_in
        if signed_in is None or signed_in.session.strength is not SessionStrength.FULL:
            return False
        return await self.rules.is_administrator(signed_in.user)


def with_details(context: ClientErrorContext, refused: NotRedirected) -> ClientErrorContext:
    client = refused.client
    registered = () if client is None else client.redirect_uris or client.redirect_hosts
    by_host = client is not None and not client.redirect_uris
    return ClientErrorContext(
        reference=context.reference,
        application=context.application,
        reason=refused.detail,
        client_id="" if client is None else client.client_id,
        received=refused.received,
        registered=tuple(compare_target(target, target if by_host else refused.received) for target in registered),
        by_host=by_host,
    )


def compare_target(target: str, received: str) -> RegisteredTarget:
    """Return the common beginning of both addresses, and the rest of each."""
    same = 0
    for ours, theirs in zip(target, received, strict=False):
        if ours != theirs:
            break
        same += 1
    return RegisteredTarget(same=target[:same], other=target[same:], received_other=received[same:])


def document_caller(request: Request) -> DocumentCaller:
    return DocumentCaller(source=caller_address_of(request.scope).source, origin=origin_of(request, "client"))


# GET and POST /proxy/oauth/authorize: redirect to the client at once, or to the pages (interface §4.2, R3).


MAX_QUERY_LENGTH: Final = 8_000  # characters; the whole address stays below the limit for request lines (S-19)
URI_TOO_LONG: Final = 414
SERVICE_UNAVAILABLE: Final = 503
FORM_ONLY: Final = frozenset({BodyKind.FORM})


class AuthorizeFields(msgspec.Struct, frozen=True, kw_only=True):
    """Authorization request parameters; errors are returned to the client.

    With a request_uri from /proxy/oauth/par only client_id counts besides; without one redirect_uri, response_type
    and scope are required.
    """

    client_id: str
    request_uri: str = ""
    redirect_uri: str = ""
    response_type: Literal["code", ""] = ""
    scope: str = ""
    response_mode: ResponseMode = ResponseMode.QUERY
    state: str = ""
    nonce: str = ""
    code_challenge: str = ""
    code_challenge_method: Literal["S256", ""] = ""
    prompt: str = ""
    max_age: int | None = None
    login_hint: str = ""
    id_token_hint: str = ""
    ui_locales: str = ""
    claims: str = ""
    acr_values: str = ""
    resource: str = ""


class AuthorizeEndpoint(Struct, kw_only=True, eq=False):
    authorize: AuthorizeService
    sign_in_flows: SignInFlows
    browsers: BrowserSessions
    error_page: ClientErrorPage
    denied_page: AccessDeniedPage
    rate_limiter: RateLimiter
    pages: PageRenderer

    async def handle_get(self, request: Request) -> Response:
        asked = AuthorizeParameters(query_pairs(request))
        take = not is_prefetch(request)
        try:
            received = await self.authorize.receive(asked, document_caller(request), take=take)
        except NotRedirected as refused:
            return await self.error_page.show(request, await self.browsers.read(request), refused)
        try:
            return await self._respond(request, received)
        except AuthorizeRefused as refused:
            answer = self.authorize.refusal(received.target, refused)
            page = (
                await self._access_denied(request, received, answer, refused)
                if isinstance(refused, NotLetIn)
                else None
            )
            return page or continue_browser(self.pages, request, answer)

    async def _access_denied(
        self,
        request: Request,
        received: ReceivedRequest,
        answer: Continuation,
        refused: NotLetIn,
    ) -> Response | None:
        """Return the page of a person without access, unless the client wants no page or the browser prefetches."""
        if not received.may_ask or is_prefetch(request):
            return None
        browser = await self.browsers.read(request)
        if browser.signed_in is not None:
            user = browser.signed_in.user
            await self.authorize.count_denial(user, refused, origin_of(request, user.user_id).address)
        return await self.denied_page.show(
            request, browser.signed_in, received.client, answer, application_ids=refused.application_ids
        )

    async def handle_head(self, request: Request) -> Response:  # noqa: ARG002 - every HEAD gets the same
        """HEAD has no response body and does nothing.

        No code is created for a request that follows no redirect (AZ-30).
        """
        return Response(None, 200, NO_STORE)

    async def handle_post(self, request: Request) -> Response:
        """Redirect a form to the address with the same parameters.

        Browsers do not send the cookies of a signed-in person with another site's POST (SameSite=Lax), but they do
        with the GET that follows.
        """
        content_type(request, FORM_ONLY)
        pairs = (*query_pairs(request), *parse_form.parse_urlencoded(await raw_body(request)))
        query = urlencode(pairs)
        if len(query) > MAX_QUERY_LENGTH:
            raise HTTPException(URI_TOO_LONG)
        return see_other(f"{Path.AUTHORIZE}?{query}")

    async def _respond(self, request: Request, received: ReceivedRequest) -> Response:
        client, wanted = received.client, await self.authorize.read_received(received)
        browser = await self.browsers.read(request)
        step = await self.authorize.next_step(wanted, client, browser.signed_in)
        if is_prefetch(request):
            return Response(None, SERVICE_UNAVAILABLE, NO_STORE)
        if step is NextStep.RETURN_TO_CLIENT and await self._has_pending_terms(request, browser, wanted, client):
            if wanted.wants(Prompt.NONE):
                raise InteractionRequired
            step = NextStep.CONSENT  # the flow asks for the terms
        if step is NextStep.RETURN_TO_CLIENT and browser.signed_in is not None:
            session = browser.signed_in.session
            origin = origin_of(request, session.user_id)
            answer = await self.authorize.create_grant(wanted, client, proof_of_session(session), origin)
            return continue_browser(self.pages, request, answer)
        # A pushed request is in the flow alone, which cannot start again without it.
        again = "" if received.pushed else pack_request(request.scope["query_string"])
        response = await self._begin_sign_in(request, browser, wanted, step, again=again)
        return self.browsers.set_browser_cookie(response, browser)

    async def _has_pending_terms(
        self, request: Request, browser: Browser, wanted: AuthorizationRequest, client: Client
    ) -> bool:
        if browser.signed_in is None:
            return False
        user_id = browser.signed_in.user.user_id
        address = origin_of(request, user_id).address
        application_ids = await self.authorize.deciding_applications(wanted, client)
        pending_terms = await self.sign_in_flows.find_terms_for(user_id, application_ids, address)
        return pending_terms is not None

    async def _begin_sign_in(
        self, request: Request, browser: Browser, wanted: AuthorizationRequest, next_step: NextStep, *, again: str
    ) -> Response:
        """Start a sign-in flow; how many one source may start is limited (AZ-33)."""
        wait = self.rate_limiter.admit(AUTHORIZE_LIMIT_KEY, caller_address_of(request.scope).source)
        if wait:
            raise TooMany(wait, "sign-ins begun from one source")
        signed_in = browser.signed_in
        if next_step is NextStep.CONSENT and signed_in is not None:
            proof = proof_of_session(signed_in.session)
            handle, interaction = await self.sign_in_flows.start_with_proof(
                KIND,
                encode_request(wanted),
                proof,
                browser=browser.browser_id,
                address=origin_of(request, proof.user_id).address,
                request=again,
            )
            # Consent may have been given meanwhile, in another window.
            return await continue_flow(self.sign_in_flows, self.pages, request, interaction, handle)
        handle = await self.sign_in_flows.start(
            KIND, encode_request(wanted), browser=browser.browser_id, request=again
        )
        if next_step is NextStep.CHOOSE_ACCOUNT:
            return see_other(f"{Path.SIGN_IN_AS}?{urlencode({'interaction': handle})}")
        return see_other(step_address(FlowStep.LOGIN, handle))

    def endpoints(self) -> list[Endpoint]:
        asked = Endpoint(
            name="oauth.authorize",
            path=Path.AUTHORIZE,
            methods=("GET",),
            handler=self.handle_get,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            section="interface §4.2",
            summary="Sign a person in to a client; answers with a redirect or a form",
            auth=RequiredAuth.SESSION,
            request=AuthorizeFields,
            accepts=FORM_ONLY,
            answers={200: HtmlPage, 303: None},
        )
        return [
            asked,
            replace(asked, name="oauth.authorize_look", methods=("HEAD",), handler=self.handle_head, hidden=True),
            replace(asked, name="oauth.authorize_post", methods=("POST",), handler=self.handle_post),
        ]
