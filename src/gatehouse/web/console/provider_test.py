"""Begin the test of a sign-in provider: the answer is shown in this session, and signs no one in."""

from collections.abc import Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.kernel.digests import sha256
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.providers.model import ProviderProblem
from gatehouse.providers.sign_in import ProviderSignIn
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.responses import see_other


class ProviderTestScreen(Struct, kw_only=True, eq=False):
    providers: ProviderSignIn
    view: ConsoleView

    async def start(self, request: Request, admin: AdminRequest) -> Response:
        """It is a link: a form could not leave for another site (form-action)."""
        require_operation(admin.rights, Operation.ADMINISTER)
        provider = self.providers.find_configured(request.path_params["row"])
        try:
            target = await self.providers.start(
                provider,
                browser=sha256(admin.browser.browser_id),
                tested_in=admin.signed_in.session.session_id,
            )
        except ProviderProblem:
            address = f"/console/settings/change?part=providers.{provider.provider_id}"
            return self.view.redirect_with_flash(address, "provider_unreachable")
        return see_other(target)

    def routes(self) -> Sequence[ConsoleRoute]:
        return [self.view.page("/settings/providers/{row}/test", self.start, fresh=True)]
