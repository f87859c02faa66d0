"""The pages of a sign-in to a protected site: two paths on the site itself, two here (R9)."""

from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.forward_auth.errors import BadSiteRequest
from gatehouse.forward_auth.model import SITE_PREFIX, SiteSignInRequest, is_site_path
from gatehouse.forward_auth.sign_in import DENIED_PATH, KIND, SiteSignIn, decode_site_request
from gatehouse.forward_auth.sign_in import encode_site_request as encode_request_fields
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import TooMany
from gatehouse.kernel.ids import new_secret
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import FlowStep, SignInProof, proof_of_session
from gatehouse.throttle.pending_sign_ins import SITE_LIMIT_KEY
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.forward_auth.cookies import SiteCookies
from gatehouse.web.forward_auth.denied_page import SiteDeniedPage, host_of
from gatehouse.web.http.browser import Browser, BrowserSessions, is_full_session, is_prefetch
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.forwarded_request import read_forwarded_request
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import NO_STORE, see_other
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.application_owners import ApplicationOwners
from gatehouse.web.pages.contexts import AccessDeniedContext
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in_flow import continue_flow, pack_request, step_address

SERVICE_UNAVAILABLE: Final = 503


class StartQuery(msgspec.Struct, frozen=True, kw_only=True):
    to: str = "/"


class ReturnQuery(msgspec.Struct, frozen=True, kw_only=True):
    code: str


class DeniedQuery(msgspec.Struct, frozen=True, kw_only=True):
    site: str


class SiteSignInQuery(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    to: str
    challenge: str


class SiteSignInPages(Struct, kw_only=True, eq=False):
    site_sign_in: SiteSignIn
    cookies: SiteCookies
    sign_in_flows: SignInFlows
    browsers: BrowserSessions
    owners: ApplicationOwners
    denied_page: SiteDeniedPage
    pages: PageRenderer
    rate_limiter: RateLimiter
    base_url: str

    async def start(self, request: Request) -> Response:
        """On the site: set the cookie that the sign-in must come back to, and go to this service."""
        origin = read_forwarded_request(request).origin
        path = read_query(request, StartQuery).to
        if not is_site_path(path):
            raise BadSiteRequest
        await self.site_sign_in.find_site(origin)
        secret = self.cookies.read_start(request, origin) or new_secret()  # one for all tabs
        asked = SiteSignInRequest(origin=origin, path=path, challenge=sha256(secret).hex())
        response = see_other(f"{self.base_url}{Path.SITE_SIGN_IN}?{urlencode(encode_request_fields(asked))}")
        self.cookies.set_start(response, origin, secret)
        return response

    async def sign_in(self, request: Request) -> Response:
        """Here: hand the sign-in over to the site, after the person has signed in."""
        query = read_query(request, SiteSignInQuery)
        asked = decode_site_request(msgspec.structs.asdict(query))
        site = await self.site_sign_in.find_site(asked.origin)
        if is_prefetch(request):
            return Response(None, SERVICE_UNAVAILABLE, NO_STORE)
        browser = await self.browsers.read(request)
        if not is_full_session(browser.signed_in):
            return await self._begin_sign_in(request, browser, asked)
        proof = proof_of_session(browser.signed_in.session)
        origin = origin_of(request, proof.user_id)
        if await self.sign_in_flows.find_terms_for(proof.user_id, (site.application_id,), origin.address):
            return await self._begin_sign_in(request, browser, asked, proof)
        return see_other(await self.site_sign_in.hand_over(asked, proof, origin))

    async def _begin_sign_in(
        self, request: Request, browser: Browser, asked: SiteSignInRequest, proof: SignInProof | None = None
    ) -> Response:
        """Start a sign-in flow: at its first step, or with `proof` at the terms."""
        wait = self.rate_limiter.admit(SITE_LIMIT_KEY, caller_address_of(request.scope).source)
        if wait:
            raise TooMany(wait, "sign-ins begun from one source")
        fields = encode_request_fields(asked)
        again = pack_request(f"{Path.SITE_SIGN_IN}?{urlencode(fields)}".encode())
        if proof is None:
            handle = await self.sign_in_flows.start(KIND, fields, browser=browser.browser_id, request=again)
            response = see_other(step_address(FlowStep.LOGIN, handle))
        else:
            address = origin_of(request, proof.user_id).address
            handle, flow = await self.sign_in_flows.start_with_proof(
                KIND, fields, proof, browser=browser.browser_id, address=address, request=again
            )
            # The terms may have been accepted meanwhile, in another window.
            response = await continue_flow(self.sign_in_flows, self.pages, request, flow, handle)
        return self.browsers.set_browser_cookie(response, browser)

    async def finish(self, request: Request) -> Response:
        """On the site: use the code, in the browser that began, and set the cookie of the session."""
        origin = read_forwarded_request(request).origin
        code = read_query(request, ReturnQuery).code
        cookie = self.cookies.read_start(request, origin)
        opened = await self.site_sign_in.open_session(origin, code, cookie, origin_of(request, ""))
        response = see_other(opened.path)
        self.cookies.set_session(response, origin, opened.secret)
        return response

    async def sign_out(self, request: Request) -> Response:
        """On the site: go to the page here that ends the person's session, and the one on the site with it."""
        await self.site_sign_in.find_site(read_forwarded_request(request).origin)
        return see_other(f"{self.base_url}{Path.LOGOUT}")

    async def show_denied_on_site(self, request: Request) -> Response:
        """On the site: the page for a proxy that passes on the status of /proxy/auth without its body (nginx)."""
        site = await self.site_sign_in.find_site(read_forwarded_request(request).origin)
        login = await self.site_sign_in.visitor_login(site.origin, self.cookies.read_session(request, site.origin))
        return self.denied_page.render(request, site, login)

    async def show_denied(self, request: Request) -> Response:
        """Here: say that the person has no access to the site, and whom to ask."""
        site = await self.site_sign_in.find_site(read_query(request, DeniedQuery).site)
        browser = await self.browsers.read(request)
        if browser.signed_in is None:
            return see_other(f"{site.origin}/")
        owner = await self.owners.owner(site.application_id)
        user = browser.signed_in.user
        context = AccessDeniedContext(
            application=host_of(site.origin), login=user.login or user.nick, ask=(owner,) if owner else ()
        )
        return self.pages.render(request, context)

    def endpoints(self) -> list[Endpoint]:
        here = Endpoint(
            name="site.sign_in",
            path=Path.SITE_SIGN_IN,
            methods=("GET",),
            handler=self.sign_in,
            dialect=Dialect.PAGE,
            rate_class=RateClass.PUBLIC,
            hidden=True,
        )
        return [
            here,
            replace(here, name="site.denied", path=DENIED_PATH, handler=self.show_denied),
            replace(here, name="site.start", path=f"{SITE_PREFIX}sign-in", handler=self.start),
            replace(here, name="site.return", path=f"{SITE_PREFIX}return", handler=self.finish),
            replace(here, name="site.denied_there", path=f"{SITE_PREFIX}denied", handler=self.show_denied_on_site),
            replace(here, name="site.sign_out", path=f"{SITE_PREFIX}sign-out", handler=self.sign_out),
        ]
