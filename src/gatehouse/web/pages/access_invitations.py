"""The invitations of a signed-in person: to hold a role or to join a group (R9)."""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.access_invitations import AccessInvitations
from gatehouse.kernel.errors import GatehouseError
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.account_contexts import InvitationsContext
from gatehouse.web.pages.account_request import AccountRequest, AccountView
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice

REFUSED = 409


class InvitationDecision(StrEnum):
    ACCEPT = "accept"
    DECLINE = "decline"


class DecisionForm(CsrfForm, frozen=True, kw_only=True):
    invitation_id: str
    decision: InvitationDecision


class InvitationsPage(Struct, kw_only=True, eq=False):
    invitations: Callable[[], AccessInvitations]  # loaded at the first use
    view: AccountView

    async def show(self, request: Request, account: AccountRequest) -> Response:
        return self.view.show(request, await self._context(account))

    async def decide(self, request: Request, account: AccountRequest, form: DecisionForm) -> Response:
        """Accept or decline one; the next page is the list while any is left, then the permissions."""
        service = self.invitations()
        if form.decision is InvitationDecision.DECLINE:
            await service.decline(account.user, form.invitation_id, account.origin)
            return see_other(Path.INVITATIONS) if await service.open_for(account.user) else see_other(Path.ACCOUNT)
        try:
            accepted = await service.accept(account.user, form.invitation_id, account.origin)
        except GatehouseError:
            return self.view.show(request, await self._context(account, refused=True), status=REFUSED)
        if accepted.refusal is not None:
            return self.view.show(request, await self._context(account, refused=True), status=REFUSED)
        if await service.open_for(account.user):
            return self.view.notices.set(see_other(Path.INVITATIONS), Notice.INVITATION_ACCEPTED)
        return self.view.redirect_with_notice(Notice.INVITATION_ACCEPTED)

    async def _context(self, account: AccountRequest, *, refused: bool = False) -> InvitationsContext:
        service = self.invitations()
        return InvitationsContext(
            csrf=self.view.csrf_token(account),
            invitations=await service.name(await service.open_for(account.user)),
            email_verified=account.user.email_verified,
            refused=refused,
        )

    def endpoints(self) -> list[Endpoint]:
        return [
            self.view.page(Path.INVITATIONS, self.show, name="account.invitations", summary="Show open invitations"),
            self.view.form(
                Path.INVITATIONS,
                DecisionForm,
                self.decide,
                name="account.invitations_decide",
                summary="Accept or decline an invitation",
            ),
        ]
