"""Data export and deletion of the account."""

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import User, login_key
from gatehouse.accounts.own_account.erasure import Erasure
from gatehouse.accounts.own_account.export import DataExport
from gatehouse.accounts.own_account.model import LastAdministrator
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.kernel.clock import Clock
from gatehouse.personal_data.requests import DataRequests
from gatehouse.web.http.browser import BrowserSessions
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.account_contexts import DeleteAccountContext
from gatehouse.web.pages.account_request import AccountRequest, AccountView
from gatehouse.web.pages.contexts import SignInContext
from gatehouse.web.pages.forms import BAD_REQUEST, CsrfForm
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice, PageProblem, ProblemKind

CONFLICT: Final = 409


class DeleteAccountForm(CsrfForm, frozen=True, kw_only=True):
    login: str


class PersonalDataForms(Struct, kw_only=True, eq=False):
    export: DataExport
    data: DataRequests
    erasure: Erasure
    passkeys: Passkeys
    browsers: BrowserSessions
    view: AccountView
    clock: Clock

    async def download(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        data = await self.export.export_user(account.user, account.origin)
        name = f"gatehouse-{account.user.user_id}.json"
        return Response(
            msgspec.json.format(msgspec.json.encode(data)),
            headers={**NO_STORE, "Content-Disposition": f'attachment; filename="{name}"'},
            media_type="application/json",
        )

    async def request_application_data(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        await self.data.request_export(account.user.user_id, account.origin)
        return self.view.redirect_with_notice(Notice.DATA_ASKED)

    async def show_delete(self, request: Request, account: AccountRequest) -> Response:
        return self._delete_page(request, account)

    async def delete(self, request: Request, account: AccountRequest, form: DeleteAccountForm) -> Response:
        if not names_account(form.login, account.user):
            return self._delete_page(request, account, problem=ProblemKind.LOGIN_DIFFERS, status=BAD_REQUEST)
        try:
            await self.erasure.erase(account.user, account.origin)
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
            csrf=self.view.csrf_token(account),
            login=account.user.login or account.user.nick,
            has_email=account.user.login is not None,
            is_banned=account.user.is_banned_anywhere(self.clock.now()),
            problem=None if problem is None else PageProblem(what=problem),
        )
        return self.view.show(request, context, status=status)

    def _deleted_page(self, request: Request, account: AccountRequest) -> Response:
        """Return the sign-in page without any account."""
        signed_out = replace(account.browser, session=None, signed_in=None)
        context = SignInContext(
            csrf=self.browsers.csrf_token(signed_out),
            notice=Notice.ACCOUNT_DELETED,
            passkeys_enabled=False,
            passkey_signals=self.passkeys.signal_of_deletion(account.user.user_id),
        )
        return self.browsers.clear_session_cookie(self.view.show(request, context))

    def endpoints(self) -> list[Endpoint]:
        return [
            self.view.form(
                Path.EXPORT, CsrfForm, self.download, name="account.export", summary="Export personal data"
            ),
            self.view.form(
                Path.EXPORT_ASK,
                CsrfForm,
                self.request_application_data,
                name="account.export_ask",
                summary="Request personal data from applications",
            ),
            self.view.page(
                Path.DELETE,
                self.show_delete,
                name="account.delete_ask",
                summary="Show the account deletion page",
                fresh=True,
            ),
            self.view.form(
                Path.DELETE,
                DeleteAccountForm,
                self.delete,
                name="account.delete",
                summary="Delete the account",
                fresh=True,
            ),
        ]


def names_account(typed: str, user: User) -> bool:
    """Whether this is the account's address; without one, its nick."""
    return typed.strip() == user.nick if user.login is None else login_key(typed) == login_key(user.login)
