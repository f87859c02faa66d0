"""Ends sessions from the account page (checklist LG-28)."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.sessions import Sessions
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.pages.owner_desk import OwnerDesk, Visit
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice
from gatehouse.web.routes.table import Endpoint


class EndForm(Guarded, frozen=True, kw_only=True):
    session_id: str


class SessionForms:
    def __init__(self, *, sessions: Sessions, desk: OwnerDesk) -> None:
        self._sessions = sessions
        self._desk = desk

    async def end_one(self, request: Request, visit: Visit, form: EndForm) -> Response:  # noqa: ARG002
        """One that is not there any more has ended as well: no difference is told."""
        await self._sessions.end(visit.signed_in, form.session_id, visit.origin)
        return self._desk.done(Notice.SESSION_ENDED)

    async def end_others(self, request: Request, visit: Visit, form: Guarded) -> Response:  # noqa: ARG002
        """Every other session, and every token whoever holds it (LG-20)."""
        await self._sessions.sign_out_everywhere(visit.user.user_id, visit.origin, keep=visit.session)
        return self._desk.done(Notice.OTHERS_ENDED)

    def endpoints(self) -> list[Endpoint]:
        return [
            self._desk.posted(
                Path.SESSION_END,
                EndForm,
                self.end_one,
                name="account.session_end",
                summary="Sign out a device",
                fresh=True,
            ),
            self._desk.posted(
                Path.SESSIONS_END_OTHERS,
                Guarded,
                self.end_others,
                name="account.sessions_end_others",
                summary="Sign out everywhere else",
                fresh=True,
            ),
        ]
