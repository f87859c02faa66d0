"""Ends sessions from the account page (checklist LG-28)."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.sessions import Sessions
from gatehouse.web.pages.desk import CsrfForm
from gatehouse.web.pages.owner_desk import AccountRequest, AccountView
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice
from gatehouse.web.routes.table import Endpoint


class EndOwnSessionForm(CsrfForm, frozen=True, kw_only=True):
    session_id: str


class SessionForms:
    def __init__(self, *, sessions: Sessions, view: AccountView) -> None:
        self._sessions = sessions
        self._view = view

    async def end_session(self, request: Request, account: AccountRequest, form: EndOwnSessionForm) -> Response:  # noqa: ARG002
        """One that is not there any more has ended as well: no difference is told."""
        await self._sessions.end(account.signed_in, form.session_id, account.origin)
        return self._view.redirect_with_notice(Notice.SESSION_ENDED)

    async def end_others(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        """Every other session, and every token whoever holds it (LG-20)."""
        await self._sessions.sign_out_everywhere(account.user.user_id, account.origin, keep=account.session)
        return self._view.redirect_with_notice(Notice.OTHERS_ENDED)

    def endpoints(self) -> list[Endpoint]:
        return [
            self._view.form(
                Path.SESSION_END,
                EndOwnSessionForm,
                self.end_session,
                name="account.session_end",
                summary="Sign out a device",
                fresh=True,
            ),
            self._view.form(
                Path.SESSIONS_END_OTHERS,
                CsrfForm,
                self.end_others,
                name="account.sessions_end_others",
                summary="Sign out everywhere else",
                fresh=True,
            ),
        ]
