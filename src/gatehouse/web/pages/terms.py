"""The page of terms: what is new, the age if a document needs one, and the answer (R10).

It is a step of a sign-in flow, or opened by the link of a login that answered TERMS.
"""

from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.terms.acceptance import Terms
from gatehouse.accounts.terms.model import PendingTerms, TermsDocument, TermsLinkDead
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import Destination, FlowStep, SignInFlow, SignInFlowGone
from gatehouse.web.http.browser import Browser, BrowserSessions, FormExpired
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.parse import read_form, read_query
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.contexts import DeadLinkContext, PageContext
from gatehouse.web.pages.forms import BAD_REQUEST, CsrfForm, page_endpoint
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in_flow import SignInCompletion, SignInFlowPages, session_of_flow, stale_form_page
from gatehouse.web.pages.vocabulary import PageProblem, ProblemKind, TermsEnd

NOTHING_PENDING: Final = PendingTerms(documents=())


class TermsContext(PageContext, frozen=True, kw_only=True):
    """Documents to accept, and a date of birth if one of them needs an age; the age itself is not told."""

    template = "terms.html"

    csrf: str
    interaction: str = ""
    token: str = ""  # of a link, instead of a sign-in in this browser
    application: str = ""  # its name
    documents: tuple[TermsDocument, ...] = ()
    version: str = ""
    asks_age: bool = False
    problem: PageProblem | None = None


class TermsEndContext(PageContext, frozen=True, kw_only=True):
    template = "terms_end.html"

    end: TermsEnd


class TermsDecision(StrEnum):
    ACCEPT = "accept"
    DECLINE = "decline"


class TermsQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""
    token: str = ""


class TermsForm(CsrfForm, frozen=True, kw_only=True):
    interaction: str = ""
    token: str = ""
    version: str = ""  # that the page showed
    birth: str = ""
    decision: TermsDecision


class TermsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A person who is asked, by a flow or by a link."""

    user_id: str
    found: PendingTerms | None
    destination: Destination
    flow: SignInFlow | None = None


class TermsPage(Struct, kw_only=True, eq=False):
    terms: Terms
    sign_in_flows: SignInFlows
    completion: SignInCompletion
    browsers: BrowserSessions
    flow_pages: SignInFlowPages
    pages: PageRenderer

    async def show(self, request: Request) -> Response:
        browser = await self.browsers.read(request)
        query = read_query(request, TermsQuery)
        try:
            asked = await self._find_request(request, browser, query.interaction, query.token)
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, query.interaction)
        except TermsLinkDead:
            return self.pages.render(request, DeadLinkContext())
        if asked.found is None:
            return await self._go_on(request, asked, query.interaction)
        return self._render(request, browser, asked, query)

    async def decide(self, request: Request) -> Response:
        browser = await self.browsers.read(request)
        form = await read_form(request, TermsForm)
        try:
            self.browsers.check_form(request, browser, form.csrf)
            asked = await self._find_request(request, browser, form.interaction, form.token)
            return await self._decide(request, browser, form, asked)
        except FormExpired:
            return stale_form_page(self.pages, request, form.interaction)
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, form.interaction)
        except TermsLinkDead:
            return self.pages.render(request, DeadLinkContext())

    async def _decide(self, request: Request, browser: Browser, form: TermsForm, asked: TermsRequest) -> Response:
        found = asked.found
        if form.decision is TermsDecision.DECLINE:
            return await self._end(request, asked, TermsEnd.DECLINED)
        if found is None:
            return await self._go_on(request, asked, form.interaction)
        if form.version != found.version:  # another version was published while the page was open
            return self._render(request, browser, asked, form, ProblemKind.TERMS_CHANGED)
        age = self.terms.age_of(form.birth) if found.minimum_age else 0
        if age is None:
            return self._render(request, browser, asked, form, ProblemKind.BIRTH_DATE)
        earlier = self.terms.read_remembered_age(browser.age)
        if age < found.minimum_age or (earlier is not None and earlier < found.minimum_age):
            response = await self._end(request, asked, TermsEnd.TOO_YOUNG)
            # The first answer counts for a day: another date must not help.
            remembered = self.terms.remember_age(age) if earlier is None else ""
            return self.browsers.set_age_cookie(response, remembered) if remembered else response
        await self.terms.accept(asked.user_id, found, age=age, origin=origin_of(request, asked.user_id))
        return await self._go_on(request, asked, form.interaction)

    async def _find_request(self, request: Request, browser: Browser, handle: str, token: str) -> TermsRequest:
        """Return whom the page asks. Raises SignInFlowGone, TermsLinkDead."""
        if token:
            link = self.terms.read_link(token)
            found = await self.terms.find_pending(link.user_id, link.application_ids, country=link.country)
            return TermsRequest(user_id=link.user_id, found=found, destination=Destination())
        flow = await self.sign_in_flows.find(handle, browser=browser.browser_id)
        if flow.step is not FlowStep.TERMS:
            raise SignInFlowGone
        user_id = session_of_flow(browser, flow).user.user_id
        return TermsRequest(
            user_id=user_id,
            found=await self.sign_in_flows.find_terms(flow, origin_of(request, user_id).address),
            destination=await self.sign_in_flows.destination(flow),
            flow=flow,
        )

    async def _go_on(self, request: Request, asked: TermsRequest, handle: str) -> Response:
        if asked.flow is None:
            return self.pages.render(request, TermsEndContext(end=TermsEnd.ACCEPTED))
        address = origin_of(request, asked.user_id).address
        moved = await self.sign_in_flows.pass_terms(asked.flow, address=address)
        return await self.completion.go_on(request, moved, handle)

    async def _end(self, request: Request, asked: TermsRequest, end: TermsEnd) -> Response:
        """End the flow without storing anything; the application that waits is told."""
        if asked.flow is not None:
            target = await self.sign_in_flows.decline_terms(asked.flow, origin_of(request, asked.user_id))
            if target and end is TermsEnd.DECLINED:
                return self.flow_pages.leave(request, target)
        return self.pages.render(request, TermsEndContext(end=end))

    def _render(
        self,
        request: Request,
        browser: Browser,
        asked: TermsRequest,
        given: TermsQuery | TermsForm,
        problem: ProblemKind | None = None,
    ) -> Response:
        found = asked.found or NOTHING_PENDING
        context = TermsContext(
            csrf=self.browsers.csrf_token(browser),
            interaction=given.interaction,
            token=given.token,
            application=asked.destination.application,
            documents=tuple(found.documents),
            version=found.version,
            asks_age=found.minimum_age > 0,
            problem=None if problem is None else PageProblem(what=problem),
        )
        status = None if problem is None else BAD_REQUEST
        return self.flow_pages.show(request, browser, asked.destination, context, status=status)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint("GET", Path.TERMS, self.show, name="terms.show", summary="Show the terms to accept"),
            page_endpoint(
                "POST", Path.TERMS, self.decide, name="terms.decide", summary="Accept or decline the terms"
            ),
        ]
