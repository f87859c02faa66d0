"""Ending sessions from the account page (checklist LG-28)."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.sessions import Sessions
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.account_request import AccountRequest, AccountView
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice


class EndOwnSessionForm(CsrfForm, frozen=True, kw_only=True):
    session_id: str


class SessionForms(Struct, kw_only=True, eq=False):
    sessions: Sessions
    view: AccountView

    async def end_session(self, request: Request, account: AccountRequest, form: EndOwnSessionForm) -> Response:  # noqa: ARG002
        """End one session; one that is gone already looks the same."""
        await self.sessions.end(account.signed_in, form.session_id, account.origin)
        return self.view.redirect_with_notice(Notice.SESSION_ENDED)

    async def end_others(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        """End every other session, and every token of the account (LG-20)."""
        await self.sessions.sign_out_everywhere(account.user.user_id, account.origin, keep=account.session)
        return self.view.redirect_with_notice(Notice.OTHERS_ENDED)

    def endpoints(self) -> list[Endpoint]:
        return [
            self.view.form(
                Path.SESSION_END,
                EndOwnSessionForm,
                self.end_session,
                name="account.session_end",
                summary="Sign out a device",
                fresh=True,
            ),
            self.view.form(
                Path.SESSIONS_END_OTHERS,
                CsrfForm,
                self.end_others,
                name="account.sessions_end_others",
                summary="Sign out everywhere else",
                fresh=True,
            ),
        ]
