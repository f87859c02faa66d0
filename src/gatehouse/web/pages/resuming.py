"""Goes on with the sign-in flow that a registration or a password reset interrupted."""

from msgspec import Struct

from gatehouse.accounts.model import FlowReference
from gatehouse.oauth.redirects import csp_source
from gatehouse.sign_in_flow.account_sign_in import ACCOUNT_KIND, APPLICATION, FORM_ACTION, LOGO, RETURN_TO
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import Destination, SignInFlowGone
from gatehouse.web.http.browser import Browser
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.sign_in_flow import SignInFlowPages, restart_address


class FlowResumption(Struct, kw_only=True, eq=False):
    """`here`: in the browser that began the flow. In another one its state is worth nothing to the application."""

    sign_in_flows: SignInFlows
    flow_pages: SignInFlowPages

    async def refer(self, browser: Browser, handle: str) -> FlowReference:
        """Return what to keep of the browser's flow. Raises SignInFlowGone."""
        if not handle:
            return FlowReference()
        destination = await self.flow_pages.destination(browser, handle)
        return FlowReference(
            handle=handle,
            application=destination.application,
            logo=destination.logo,
            start=destination.start,
            form_action=destination.form_action,
        )

    async def destination(self, browser: Browser, flow: FlowReference, *, here: bool) -> Destination:
        """Return what pages show about it, and where their forms may lead."""
        if here:
            try:
                return await self.flow_pages.destination(browser, flow.handle)
            except SignInFlowGone:
                pass
        return Destination(application=flow.application, logo=flow.logo, form_action=_form_action(flow, here=here))

    async def start(self, browser: Browser, flow: FlowReference, *, here: bool) -> str:
        """Return the handle of a flow that ends where the person wanted to go; empty for their account."""
        if not flow.handle and not flow.start:
            return ""
        if here:
            try:
                await self.sign_in_flows.find(flow.handle, browser=browser.browser_id)
            except SignInFlowGone:
                pass
            else:
                return flow.handle
        ask = {
            RETURN_TO: address_of(flow, here=here),
            APPLICATION: flow.application,
            LOGO: flow.logo,
            FORM_ACTION: _form_action(flow, here=here),
        }
        return await self.sign_in_flows.start(ACCOUNT_KIND, ask, browser=browser.browser_id)


def address_of(flow: FlowReference, *, here: bool) -> str:
    """Return where to go without the flow: its request again, or the application itself."""
    again = restart_address(flow.handle, fallback=Path.ACCOUNT)
    return again if here else flow.start or again


def _form_action(flow: FlowReference, *, here: bool) -> str:
    return csp_source(flow.start) if flow.start and not here else flow.form_action
