"""A copy of everything kept about a person, and the end of the account."""

from dataclasses import replace
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.logins import login_key
from gatehouse.accounts.own.erasure import Erasure
from gatehouse.accounts.own.errors import LastAdministrator
from gatehouse.accounts.own.export import DataExport
from gatehouse.personal_data.requests import DataRequests
from gatehouse.web.browser import BrowserSessions
from gatehouse.web.pages.account_contexts import DeleteAccountContext
from gatehouse.web.pages.contexts import SignInContext
from gatehouse.web.pages.desk import BAD_REQUEST, CsrfForm
from gatehouse.web.pages.owner_desk import AccountRequest, AccountView
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice, PageProblem, ProblemKind
from gatehouse.web.responses import NO_STORE
from gatehouse.web.routes.table import Endpoint

CONFLICT: Final = 409


class DeleteAccountForm(CsrfForm, frozen=True, kw_only=True):
    login: str


class PersonalDataForms:
    def __init__(
        self,
        *,
        export: DataExport,
        data: DataRequests,
        erasure: Erasure,
        browsers: BrowserSessions,
        desk: AccountView,
    ) -> None:
        self._export = export
        self._data = data
        self._erasure = erasure
        self._browsers = browsers
        self._desk = desk

    async def take_copy(self, request: Request, visit: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        data = await self._export.of(visit.user, visit.origin)
        name = f"gatehouse-{visit.user.user_id}.json"
        return Response(
            msgspec.json.format(msgspec.json.encode(data)),
            headers={**NO_STORE, "Content-Disposition": f'attachment; filename="{name}"'},
            media_type="application/json",
        )

    async def ask_applications(self, request: Request, visit: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        await self._data.ask(visit.user.user_id, visit.origin)
        return self._desk.done(Notice.DATA_ASKED)

    async def ask(self, request: Request, visit: AccountRequest) -> Response:
        return self._form(request, visit)

    async def delete(self, request: Request, visit: AccountRequest, form: DeleteAccountForm) -> Response:
        if login_key(form.login) != visit.user.login_key:
            return self._form(request, visit, problem=ProblemKind.LOGIN_DIFFERS, status=BAD_REQUEST)
        try:
            await self._erasure.erase(visit.user, visit.origin)
        except LastAdministrator:
            return self._form(request, visit, problem=ProblemKind.LAST_ADMINISTRATOR, status=CONFLICT)
        return self._gone(request, visit)

    def _form(
        self,
        request: Request,
        visit: AccountRequest,
        *,
        problem: ProblemKind | None = None,
        status: int | None = None,
    ) -> Response:
        context = DeleteAccountContext(
            csrf=self._desk.csrf(visit),
            login=visit.user.login or "",
            problem=None if problem is None else PageProblem(what=problem),
        )
        return self._desk.show(request, context, status=status)

    def _gone(self, request: Request, visit: AccountRequest) -> Response:
        """The sign-in page, for nobody in particular."""
        nobody = replace(visit.browser, session=None, signed_in=None)
        context = SignInContext(
            csrf=self._browsers.csrf(nobody), notice=Notice.ACCOUNT_DELETED, passkeys_enabled=False
        )
        return self._browsers.signed_out(self._desk.show(request, context))

    def endpoints(self) -> list[Endpoint]:
        return [
            self._desk.posted(
                Path.EXPORT, CsrfForm, self.take_copy, name="account.export", summary="Everything kept about oneself"
            ),
            self._desk.posted(
                Path.EXPORT_ASK,
                CsrfForm,
                self.ask_applications,
                name="account.export_ask",
                summary="Ask applications what they keep about oneself",
            ),
            self._desk.shown(
                Path.DELETE, self.ask, name="account.delete_ask", summary="What deleting means", fresh=True
            ),
            self._desk.posted(
                Path.DELETE,
                DeleteAccountForm,
                self.delete,
                name="account.delete",
                summary="Delete the account",
                fresh=True,
            ),
        ]
