"""Connected applications on the account page: what each was allowed, and taking it back (R3)."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.oauth.consent import Consents
from gatehouse.oauth.model import Client, Consent
from gatehouse.web.pages.account_contexts import ConnectedApplication
from gatehouse.web.pages.desk import CsrfForm
from gatehouse.web.pages.owner_desk import AccountRequest, AccountView
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice
from gatehouse.web.routes.table import Endpoint


class RevokeApplicationForm(CsrfForm, frozen=True, kw_only=True):
    client_id: str


class ConnectedApplicationForms:
    def __init__(self, *, consents: Consents, view: AccountView) -> None:
        self._consents = consents
        self._view = view

    async def revoke(self, request: Request, account: AccountRequest, form: RevokeApplicationForm) -> Response:  # noqa: ARG002
        """One that is not there any more is withdrawn as well: no difference is told."""
        await self._consents.withdraw(account.user.user_id, form.client_id, account.origin)
        return self._view.redirect_with_notice(Notice.APPLICATION_REVOKED)

    def endpoints(self) -> list[Endpoint]:
        return [
            self._view.form(
                Path.APPLICATION_REVOKE,
                RevokeApplicationForm,
                self.revoke,
                name="account.application_revoke",
                summary="Withdraw an application's access",
                fresh=True,
            )
        ]


def connected_applications(given: Sequence[tuple[Consent, Client]]) -> tuple[ConnectedApplication, ...]:
    return tuple(
        ConnectedApplication(
            client_id=client.client_id, name=client.name, scopes=consent.scopes, since=consent.given_at
        )
        for consent, client in given
    )
