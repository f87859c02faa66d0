"""Connected applications on the account page: what each was allowed, and taking it back (R3)."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.oauth.consent import Consents
from gatehouse.oauth.model import Client, Consent
from gatehouse.web.pages.account_contexts import ConnectedApplication
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.pages.owner_desk import OwnerDesk, Visit
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice
from gatehouse.web.routes.table import Endpoint


class RevokeForm(Guarded, frozen=True, kw_only=True):
    client_id: str


class ApplicationForms:
    def __init__(self, *, consents: Consents, desk: OwnerDesk) -> None:
        self._consents = consents
        self._desk = desk

    async def revoke(self, request: Request, visit: Visit, form: RevokeForm) -> Response:  # noqa: ARG002
        """One that is not there any more is withdrawn as well: no difference is told."""
        await self._consents.withdraw(visit.user.user_id, form.client_id, visit.origin)
        return self._desk.done(Notice.APPLICATION_REVOKED)

    def endpoints(self) -> list[Endpoint]:
        return [
            self._desk.posted(
                Path.APPLICATION_REVOKE,
                RevokeForm,
                self.revoke,
                name="account.application_revoke",
                summary="Withdraw an application's access",
                fresh=True,
            )
        ]


def connected(given: Sequence[tuple[Consent, Client]]) -> tuple[ConnectedApplication, ...]:
    return tuple(
        ConnectedApplication(
            client_id=client.client_id, name=client.name, scopes=consent.scopes, since=consent.given_at
        )
        for consent, client in given
    )
