"""A copy of everything kept about a person, and the end of the account."""

from dataclasses import replace
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.logins import login_key
from gatehouse.accounts.own.erasure import Erasure
from gatehouse.accounts.own.errors import LastAdministrator
from gatehouse.accounts.own.export import Export
from gatehouse.personal_data.requests import DataDesk
from gatehouse.web.browser import Browsers
from gatehouse.web.pages.account_contexts import DeleteAccountContext
from gatehouse.web.pages.contexts import SignInContext
from gatehouse.web.pages.desk import NOT_YET, Guarded
from gatehouse.web.pages.owner_desk import OwnerDesk, Visit
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice, Problem, Trouble
from gatehouse.web.responses import NO_STORE
from gatehouse.web.routes.table import Endpoint

MEANWHILE: Final = 409


class DeleteForm(Guarded, frozen=True, kw_only=True):
    login: str


class DataForms:
    def __init__(
        self, *, export: Export, data: DataDesk, erasure: Erasure, browsers: Browsers, desk: OwnerDesk
    ) -> None:
        self._export = export
        self._data = data
        self._erasure = erasure
        self._browsers = browsers
        self._desk = desk

    async def take_copy(self, request: Request, visit: Visit, form: Guarded) -> Response:  # noqa: ARG002
        data = await self._export.of(visit.user, visit.origin)
        name = f"gatehouse-{visit.user.user_id}.json"
        return Response(
            msgspec.json.format(msgspec.json.encode(data)),
            headers={**NO_STORE, "Content-Disposition": f'attachment; filename="{name}"'},
            media_type="application/json",
        )

    async def ask_applications(self, request: Request, visit: Visit, form: Guarded) -> Response:  # noqa: ARG002
        await self._data.ask(visit.user.user_id, visit.origin)
        return self._desk.done(Notice.DATA_ASKED)

    async def ask(self, request: Request, visit: Visit) -> Response:
        return self._form(request, visit)

    async def delete(self, request: Request, visit: Visit, form: DeleteForm) -> Response:
        if login_key(form.login) != visit.user.login_key:
            return self._form(request, visit, problem=Trouble.LOGIN_DIFFERS, status=NOT_YET)
        try:
            await self._erasure.erase(visit.user, visit.origin)
        except LastAdministrator:
            return self._form(request, visit, problem=Trouble.LAST_ADMINISTRATOR, status=MEANWHILE)
        return self._gone(request, visit)

    def _form(
        self, request: Request, visit: Visit, *, problem: Trouble | None = None, status: int | None = None
    ) -> Response:
        context = DeleteAccountContext(
            csrf=self._desk.csrf(visit),
            login=visit.user.login or "",
            problem=None if problem is None else Problem(what=problem),
        )
        return self._desk.show(request, context, status=status)

    def _gone(self, request: Request, visit: Visit) -> Response:
        """The sign-in page, for nobody in particular."""
        nobody = replace(visit.browser, session=None, signed_in=None)
        context = SignInContext(
            csrf=self._browsers.csrf(nobody), notice=Notice.ACCOUNT_DELETED, passkeys_enabled=False
        )
        return self._browsers.signed_out(self._desk.show(request, context))

    def endpoints(self) -> list[Endpoint]:
        return [
            self._desk.posted(
                Path.EXPORT, Guarded, self.take_copy, name="account.export", summary="Export personal data"
            ),
            self._desk.posted(
                Path.EXPORT_ASK,
                Guarded,
                self.ask_applications,
                name="account.export_ask",
                summary="Request personal data from applications",
            ),
            self._desk.shown(
                Path.DELETE, self.ask, name="account.delete_ask", summary="Show the account deletion page", fresh=True
            ),
            self._desk.posted(
                Path.DELETE,
                DeleteForm,
                self.delete,
                name="account.delete",
                summary="Delete the account",
                fresh=True,
            ),
        ]
