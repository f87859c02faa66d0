"""Consent: an application requests data about a person, who allows or denies it (R3)."""

from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.session_model import UserSession
from gatehouse.audit.model import AuditRecord
from gatehouse.oauth.authorize.purpose import KIND, AuthorizeSignInPurpose, decode_request
from gatehouse.oauth.authorize.request import AuthorizationRequest
from gatehouse.oauth.authorize.service import Consents
from gatehouse.oauth.delegation import (
    ActingApplication,
    acting_applications,
    delegated_applications,
    without_delegates,
)
from gatehouse.oauth.redirects import document_host
from gatehouse.oauth.store import ClientStore, scope_texts
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import Continuation, FlowStep, SignInFlow, SignInFlowGone, proof_of_flow
from gatehouse.web.http.browser import Browser, BrowserSessions
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.application_owners import ApplicationOwners
from gatehouse.web.pages.contexts import ConsentContext
from gatehouse.web.pages.forms import page_endpoint
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.sign_in_flow import FlowForm, SignInFlowPages, session_of_flow


class ConsentDecision(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


CONSENT_DAYS: Final = (1, 7, 30, 90)  # how long a person may limit access to


class ConsentQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""


class ConsentForm(FlowForm, frozen=True, kw_only=True, forbid_unknown_fields=True):
    decision: ConsentDecision
    days: str = ""  # until it ends; empty for never


class ConsentPage(Struct, kw_only=True, eq=False):
    consents: Consents
    owners: ApplicationOwners
    purpose: AuthorizeSignInPurpose
    clients: ClientStore
    sign_in_flows: SignInFlows
    browsers: BrowserSessions
    flow_pages: SignInFlowPages

    async def show(self, request: Request) -> Response:
        browser = await self.browsers.read(request)
        handle = read_query(request, ConsentQuery).interaction
        try:
            flow, signed_in = await self._find_pending(browser, handle)
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, handle)
        destination = await self.sign_in_flows.destination(flow)
        wanted = decode_request(flow)
        context = ConsentContext(
            csrf=self.browsers.csrf_token(browser),
            interaction=handle,
            application=destination.application,
            owner=await self._owner_name(wanted.client_id),
            may_be_another=not wanted.subjects,
            document_host=document_host(wanted.client_id),
            returns_to=destination.returns_to,
            nick=signed_in.user.nick,
            login=signed_in.user.login or "",
            scopes=await scope_texts(self.clients, without_delegates(wanted.consent_scopes)),
            acting=await self._acting_applications(wanted),
            days=CONSENT_DAYS,
            logo=destination.logo,
            links=destination.links,
        )
        return self.flow_pages.show(request, browser, destination, context)

    async def decide(self, request: Request) -> Response:
        return await self.flow_pages.handle_form(request, ConsentForm, self._decide)

    async def _decide(self, request: Request, browser: Browser, form: ConsentForm) -> Response:
        flow, _ = await self._find_pending(browser, form.interaction)
        if form.decision is ConsentDecision.ALLOW:
            return self.flow_pages.leave(request, await self._allow(request, flow, form))
        await self.sign_in_flows.discard(flow, self._denial_record(request, flow))
        origin = origin_of(request, proof_of_flow(flow).user_id)
        return self.flow_pages.leave(request, await self.purpose.refuse(flow, origin))

    async def _owner_name(self, client_id: str) -> str:
        client = await self.clients.client(client_id)
        return "" if client.application_id is None else await self.owners.owner(client.application_id)

    async def _acting_applications(self, wanted: AuthorizationRequest) -> tuple[ActingApplication, ...]:
        client = await self.clients.client(wanted.client_id)
        programs = await self.clients.acting_programs(delegated_applications(wanted.scopes))
        through = (program for program in programs if program.acts_through(client.application_id))
        return acting_applications(through, wanted.scopes)

    async def _allow(self, request: Request, flow: SignInFlow, form: ConsentForm) -> Continuation:
        wanted = decode_request(flow)
        user_id = proof_of_flow(flow).user_id
        origin = origin_of(request, user_id)
        client = await self.clients.client(wanted.client_id)
        days = next((days for days in CONSENT_DAYS if str(days) == form.days), 0)
        await self.consents.give(user_id, client, wanted.consent_scopes, origin, days=days)
        return await self.sign_in_flows.finish(await self.sign_in_flows.approve(flow), origin)

    def _denial_record(self, request: Request, flow: SignInFlow) -> AuditRecord:
        wanted, user_id = decode_request(flow), proof_of_flow(flow).user_id
        return self.consents.denial_record(
            user_id, wanted.client_id, wanted.consent_scopes, origin_of(request, user_id)
        )

    async def _find_pending(self, browser: Browser, handle: str) -> tuple[SignInFlow, UserSession]:
        """Return the flow at this step, of the session this browser still has. Raises SignInFlowGone."""
        flow = await self.sign_in_flows.find(handle, browser=browser.browser_id)
        if flow.kind != KIND or flow.step is not FlowStep.CONSENT:
            raise SignInFlowGone
        return flow, session_of_flow(browser, flow)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint("GET", Path.CONSENT, self.show, name="consent.show", summary="Show the consent page"),
            page_endpoint("POST", Path.CONSENT, self.decide, name="consent.decide", summary="Allow or deny access"),
        ]
