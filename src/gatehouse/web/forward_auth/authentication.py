"""GET /proxy/auth: a reverse proxy asks whether a request may pass (R9, docs/guides/protect-a-site.md)."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.model import User
from gatehouse.forward_auth.authentication import SiteAnswer, SiteAuthentication, SiteQuestion, Visitor
from gatehouse.forward_auth.model import SITE_PREFIX
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.model.protected_site import ProtectedSite
from gatehouse.permissions.questions.parsing import read_rule
from gatehouse.web.forward_auth.cookies import SiteCookies
from gatehouse.web.forward_auth.denied_page import SiteDeniedPage
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.errors import Dialect, PlainFailure, request_id_of
from gatehouse.web.http.forwarded_request import ForwardedRequest, read_forwarded_request
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import NO_STORE, json_response
from gatehouse.web.http.routing import Endpoint, HtmlPageOrFailure, RateClass

FOUND: Final = 302
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
# Set on every answer: a proxy that copies a missing header would keep what the client sent.
NO_VISITOR: Final[Mapping[str, str]] = dict.fromkeys(
    ("X-Auth-User", "X-Auth-Email", "X-Auth-Name", "X-Auth-Roles", "X-Auth-Token"), ""
)
FORWARDED_HEADERS: Final[Mapping[str, str]] = {
    "X-Forwarded-Host": "The host of the protected site",
    "X-Forwarded-Proto": "Its scheme",
    "X-Forwarded-Uri": "The path and query that were asked for",
    "X-Forwarded-Method": "The method of the request",
    "Accept": "That of the request: pages are redirected, other requests are answered with 401",
}
PLAIN_CHARACTERS: Final = "".join(map(chr, range(0x21, 0x7F))).replace("%", "").replace(",", "")


class ForwardAuthQuery(msgspec.Struct, frozen=True, kw_only=True):
    application_id: Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,18}\Z")] | None = None  # that the site belongs to
    rule: str | None = None  # needed besides the site's own
    redirect: Literal["0", "1"] = "0"  # 1: pages are redirected to the sign-in (Caddy, Traefik)


class ForwardAuthEndpoint(Struct, kw_only=True, eq=False):
    authentication: SiteAuthentication
    cookies: SiteCookies
    denied_page: SiteDeniedPage
    failures: FailedSignIns

    async def handle(self, request: Request) -> Response:
        forwarded = read_forwarded_request(request)
        query = read_query(request, ForwardAuthQuery)
        caller = caller_address_of(request.scope)
        question = SiteQuestion(
            origin=forwarded.origin,
            cookie=self.cookies.read_session(request, forwarded.origin),
            application_id=None
            if query.application_id is None
            else grammar.parse_application_id(query.application_id),
            rule=None if query.rule is None else read_rule(query.rule, "rule"),
            address=caller.address if caller.proven else None,
        )
        answer = await self.authentication.answer(question)
        if answer.visitor is not None:
            return Response(None, 200, {**NO_STORE, **visitor_headers(answer.visitor)})
        if answer.denied is not None:
            if forwarded.is_navigation:  # once for a page, however much it loads
                self.failures.count(answer.denied.user_id, answer.reason, str(caller.address))
            return self._denial(request, answer.site, answer.denied)
        return self._ask_to_sign_in(request, forwarded, answer, redirects=query.redirect == "1")

    def _denial(self, request: Request, site: ProtectedSite, user: User) -> Response:
        page = self.denied_page.render(request, site, user.login or user.nick)
        page.headers.update(NO_VISITOR)
        return page

    def _ask_to_sign_in(
        self, request: Request, forwarded: ForwardedRequest, answer: SiteAnswer, *, redirects: bool
    ) -> Response:
        address = sign_in_address(answer.site.origin, forwarded.path)
        headers = {**NO_VISITOR, "Location": address}
        if redirects and forwarded.is_navigation:
            return Response(None, FOUND, {**NO_STORE, **headers})
        failure = PlainFailure(error=f"Sign in at {address}", request_id=request_id_of(request.scope))
        return json_response(failure, status=UNAUTHORIZED, headers={**headers, "WWW-Authenticate": "Gatehouse"})

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name="forward_auth",
            path="/proxy/auth",
            methods=("GET",),
            handler=self.handle,
            dialect=Dialect.PLAIN,
            rate_class=RateClass.SITE,
            section="interface R9",
            summary="Ask whether a request to a protected site may pass; for reverse proxies",
            request=ForwardAuthQuery,
            headers=FORWARDED_HEADERS,
            answers={200: None, FOUND: None, UNAUTHORIZED: PlainFailure, FORBIDDEN: HtmlPageOrFailure},
            error_headers=NO_VISITOR,
        )


def sign_in_address(origin: str, path: str) -> str:
    return f"{origin}{SITE_PREFIX}sign-in?{urlencode({'to': path})}"


def visitor_headers(visitor: Visitor) -> dict[str, str]:
    return {
        "X-Auth-User": visitor.user_id,
        "X-Auth-Email": header_text(visitor.email),
        "X-Auth-Name": header_text(visitor.nick),
        "X-Auth-Roles": ",".join(map(header_text, visitor.roles)),
        "X-Auth-Token": visitor.token,
    }


def header_text(text: str) -> str:
    """Return the text with everything but visible ASCII percent-encoded, and also percent and comma."""
    return quote(text, safe=PLAIN_CHARACTERS)
