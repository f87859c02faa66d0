"""Why an application denies access, shown to administrators; other people learn whom to ask."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import User
from gatehouse.accounts.session_model import UserSession
from gatehouse.oauth.model import Client
from gatehouse.sign_in_flow.model import Continuation
from gatehouse.web.http.browser import is_full_session
from gatehouse.web.http.context import content_security_policy
from gatehouse.web.pages.application_owners import ApplicationOwners
from gatehouse.web.pages.contexts import AccessDeniedContext
from gatehouse.web.pages.denial_reasons import DenialReasons
from gatehouse.web.pages.rendering import PageRenderer

# An administrator who is denied access sees the rule before the client gets the error. Everyone else is redirected
# to the client at once (RFC 6749 §4.1.2.1, checklist AZ-31).


class AccessDeniedPage(Struct, kw_only=True, eq=False):
    reasons: DenialReasons
    owners: ApplicationOwners
    pages: PageRenderer

    async def show(
        self,
        request: Request,
        signed_in: UserSession | None,
        client: Client,
        answer: Continuation,
        *,
        application_ids: Sequence[int],
    ) -> Response | None:
        """Return the page; None for people who may not see it. `answer` is what tells the client.

        `application_ids`: the applications that were asked about the person.
        """
        if signed_in is None:
            return None
        why = await self.reasons.explain(signed_in, application_ids)
        refusing = await self.reasons.find_refusing_application(signed_in.user, application_ids)
        if why is None or refusing is None:
            return None
        context = await self._context(signed_in.user, client, refusing)
        if isinstance(answer, str):
            return self.pages.render(request, replace(context, return_to=answer, why=why))
        policy = {"Content-Security-Policy": content_security_policy(form_action=[answer.form_action])}
        return self.pages.render(request, replace(context, return_form=answer, why=why), headers=policy)

    async def show_on_device(
        self,
        request: Request,
        signed_in: UserSession | None,
        client: Client,
        *,
        application_ids: Sequence[int],
    ) -> Response | None:
        """Return the page for everyone, because a device has no page of its own; None when access is not denied."""
        if not is_full_session(signed_in):
            return None
        refusing = await self.reasons.find_refusing_application(signed_in.user, application_ids)
        if refusing is None:
            return None
        why = await self.reasons.explain(signed_in, application_ids)
        shown = replace(await self._context(signed_in.user, client, refusing), on_device=True, why=why)
        return self.pages.render(request, shown)

    async def _context(self, user: User, client: Client, application_id: int) -> AccessDeniedContext:
        owner = await self.owners.owner(application_id)
        return AccessDeniedContext(application=client.name, login=user.login or "", ask=(owner,) if owner else ())
