"""An application does not let an administrator in: he is told which rule it is, before the client hears of it.

Everybody else goes back to the client at once (RFC 6749 §4.1.2.1, checklist AZ-31).
"""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import User, UserSession
from gatehouse.oauth.model import Client
from gatehouse.web.browser import is_full_session
from gatehouse.web.pages.consent import ApplicationOwnerLookup
from gatehouse.web.pages.contexts import AccessDeniedContext
from gatehouse.web.pages.denied import DenialReasons
from gatehouse.web.pages.rendering import PageRenderer


class AccessDeniedPage:
    def __init__(self, *, reasons: DenialReasons, owners: ApplicationOwnerLookup, pages: PageRenderer) -> None:
        self._reasons = reasons
        self._owners = owners
        self._pages = pages

    async def show(
        self, request: Request, signed_in: UserSession | None, client: Client, return_to: str
    ) -> Response | None:
        """None for whoever is not to see it. `return_to`: the address that tells the client no."""
        if signed_in is None or client.application_id is None:
            return None
        why = await self._reasons.explain(signed_in, (client.application_id,))
        if why is None:
            return None
        context = await self._context(signed_in.user, client, client.application_id)
        shown = replace(context, return_to=return_to, why=why)
        return self._pages.render(request, shown)

    async def show_on_device(
        self, request: Request, signed_in: UserSession | None, client: Client
    ) -> Response | None:
        """For everybody, since a device has no page of its own; None when nothing refuses him."""
        if not is_full_session(signed_in) or client.application_id is None:
            return None
        user, application_id = signed_in.user, client.application_id
        if not await self._reasons.is_refused(user, application_id):
            return None
        why = await self._reasons.explain(signed_in, (application_id,))
        shown = replace(await self._context(user, client, application_id), on_device=True, why=why)
        return self._pages.render(request, shown)

    async def _context(self, user: User, client: Client, application_id: int) -> AccessDeniedContext:
        owner = await self._owners.owner(application_id)
        return AccessDeniedContext(application=client.name, login=user.login or "", ask=(owner,) if owner else ())
