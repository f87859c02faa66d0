"""The page for a request that names no client, or an address that is not the client's: nobody is sent there."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import SessionStrength
from gatehouse.oauth.refusals import NotRedirected
from gatehouse.web.browser import Browser
from gatehouse.web.dialects import request_id_of
from gatehouse.web.pages.contexts import ClientErrorContext, RegisteredTarget
from gatehouse.web.pages.denied import AdministratorLookup
from gatehouse.web.pages.rendering import PageRenderer


class ClientErrorPage:
    def __init__(self, *, administrators: AdministratorLookup, pages: PageRenderer) -> None:
        self._administrators = administrators
        self._pages = pages

    async def show(self, request: Request, browser: Browser, refused: NotRedirected) -> Response:
        """Words for the person; what was received beside what is registered for whoever can mend it."""
        context = ClientErrorContext(
            request_id=request_id_of(request.scope),
            application=refused.client.name if refused.client else "",
        )
        if await self._may_see_details(browser, refused):
            context = with_details(context, refused)
        return self._pages.render(request, context)

    async def _may_see_details(self, browser: Browser, refused: NotRedirected) -> bool:
        if refused.client is not None and refused.client.explain_errors:
            return True
        signed_in = browser.signed_in
        if signed_in is None or signed_in.session.strength is not SessionStrength.FULL:
            return False
        return await self._administrators.is_administrator(signed_in.user)


def with_details(context: ClientErrorContext, refused: NotRedirected) -> ClientErrorContext:
    client = refused.client
    registered = () if client is None else client.redirect_uris or client.redirect_hosts
    by_host = client is not None and not client.redirect_uris
    return ClientErrorContext(
        request_id=context.request_id,
        application=context.application,
        reason=refused.detail,
        client_id="" if client is None else client.client_id,
        received=refused.received,
        registered=tuple(compare_target(target, target if by_host else refused.received) for target in registered),
        by_host=by_host,
    )


def compare_target(target: str, received: str) -> RegisteredTarget:
    """What they have in common from the left, and what is other in each from there."""
    same = 0
    for ours, theirs in zip(target, received, strict=False):
        if ours != theirs:
            break
        same += 1
    return RegisteredTarget(same=target[:same], other=target[same:], received_other=received[same:])
