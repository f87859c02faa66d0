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
        view: AccountView,
    ) -> None:
        self._export = export
        self._data = data
        self._erasure = erasure
        self._browsers = browsers
        self._view = view

    async def download(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        data = await self._export.export_user(account.user, account.origin)
        name = f"gatehouse-{account.user.user_id}.json"
        return Response(
            msgspec.json.format(msgspec.json.encode(data)),
            headers={**NO_STORE, "Content-Disposition": f'attachment; filename="{name}"'},
            media_type="application/json",
        )

    async def request_application_data(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        await self._data.request_export(account.user.user_id, account.origin)
        return self._view.redirect_with_notice(Notice.DATA_ASKED)

    async def show_delete(self, request: Request, account: AccountRequest) -> Response:
        return self._delete_page(request, account)

    async def delete(self, request: Request, account: AccountRequest, form: DeleteAccountForm) -> Response:
        if login_key(form.login) != account.user.login_key:
            return self._delete_page(request, account, problem=ProblemKind.LOGIN_DIFFERS, status=BAD_REQUEST)
        try:
            await self._erasure.erase(account.user, account.origin)
        except LastAdministrator:
            return self._delete_page(request, account, problem=ProblemKind.LAST_ADMINISTRATOR, status=CONFLICT)
        return self._deleted_page(request, account)

    def _delete_page(
        self,
        request: Request,
        account: AccountRequest,
        *,
        problem: ProblemKind | None = None,
        status: int | None = None,
    ) -> Response:
        context = DeleteAccountContext(
            csrf=self._view.csrf_token(account),
            login=account.user.login or "",
            problem=None if problem is None else PageProblem(what=problem),
        )
        return self._view.show(request, context, status=status)

    def _deleted_page(self, request: Request, account: AccountRequest) -> Response:
        """The sign-in page, for nobody in particular."""
        nobody = replace(account.browser, session=None, signed_in=None)
        context = SignInContext(
            csrf=self._browsers.csrf_token(nobody), notice=Notice.ACCOUNT_DELETED, passkeys_enabled=False
        )
        return self._browsers.clear_session_cookie(self._view.show(request, context))

    def endpoints(self) -> list[Endpoint]:
        return [
            self._view.form(
                Path.EXPORT, CsrfForm, self.download, name="account.export", summary="Export personal data"
            ),
            self._view.form(
                Path.EXPORT_ASK,
                CsrfForm,
                self.request_application_data,
                name="account.export_ask",
                summary="Request personal data from applications",
            ),
            self._view.page(
                Path.DELETE,
                self.show_delete,
                name="account.delete_ask",
                summary="Show the account deletion page",
                fresh=True,
            ),
            self._view.form(
                Path.DELETE,
                DeleteAccountForm,
                self.delete,
                name="account.delete",
                summary="Delete the account",
                fresh=True,
            ),
        ]
