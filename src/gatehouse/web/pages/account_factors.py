"""Second factors on the account page: set up, renamed, removed; recovery codes."""

from collections.abc import Sequence
from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.second_factors.email_code import EmailCodes
from gatehouse.accounts.second_factors.errors import (
    BadPasskeyName,
    EmailNotVerified,
    EnrolmentGone,
    FactorExists,
    FactorMissing,
    PasskeyRefused,
    PasskeyTaken,
    SecondFactorWrong,
    TooManyPasskeys,
)
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.recovery import RecoveryCodes
from gatehouse.accounts.second_factors.totp import Totp
from gatehouse.kernel.errors import Refused
from gatehouse.web.pages.account import AccountPage
from gatehouse.web.pages.contexts import PasskeySetupContext, RecoveryCodesContext, TotpSetupContext
from gatehouse.web.pages.desk import NOT_YET, Guarded
from gatehouse.web.pages.owner_desk import OwnerDesk, Visit, place
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice, Problem, Section, Trouble
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint

REFUSED: Final = 403
MEANWHILE: Final = 409


class PasskeysImpossible(Refused):
    public = "Passkeys need a host name, but this installation uses an IP address."


class CodeForm(Guarded, frozen=True, kw_only=True):
    otp: str


class PasskeyForm(Guarded, frozen=True, kw_only=True):
    name: str
    credential: str


class RenameForm(Guarded, frozen=True, kw_only=True):
    passkey_id: str
    name: str


class RemoveForm(Guarded, frozen=True, kw_only=True):
    passkey_id: str


class SwitchForm(Guarded, frozen=True, kw_only=True):
    on: Literal["0", "1"]


class FactorForms:
    def __init__(
        self,
        *,
        totp: Totp,
        passkeys: Passkeys,
        email_codes: EmailCodes,
        recovery: RecoveryCodes,
        account: AccountPage,
        desk: OwnerDesk,
    ) -> None:
        self._totp = totp
        self._passkeys = passkeys
        self._email_codes = email_codes
        self._recovery = recovery
        self._account = account
        self._desk = desk

    # -- authenticator app ----------------------------------------------------------------------------

    async def show_totp(self, request: Request, visit: Visit) -> Response:
        """The secret that waits for its first code; the same one as long as it waits."""
        if visit.user.sealed_totp is not None:
            return see_other(place(Section.FACTORS))
        try:
            return await self._totp_form(request, visit)
        except EmailNotVerified:
            return await self._problem(request, visit, Trouble.EMAIL_UNVERIFIED, status=MEANWHILE)

    async def confirm_totp(self, request: Request, visit: Visit, form: CodeForm) -> Response:
        if visit.user.sealed_totp is not None:
            return see_other(place(Section.FACTORS))
        try:
            codes = await self._totp.confirm(visit.user, form.otp.strip(), origin=visit.origin, device=visit.device)
        except SecondFactorWrong:
            return await self._totp_form(request, visit, Trouble.WRONG_CODE, status=REFUSED)
        except EnrolmentGone:
            return see_other(Path.TOTP)
        return self._added(request, visit, codes, Notice.TOTP_ADDED)

    async def remove_totp(self, request: Request, visit: Visit, form: Guarded) -> Response:  # noqa: ARG002
        try:
            await self._totp.remove(visit.user, origin=visit.origin, device=visit.device)
        except FactorMissing:
            return await self._meanwhile(request, visit)
        return self._desk.done(Notice.TOTP_REMOVED)

    async def _totp_form(
        self, request: Request, visit: Visit, trouble: Trouble | None = None, *, status: int = 200
    ) -> Response:
        enrolment = await self._totp.pending(visit.user) or await self._totp.begin(visit.user)
        context = TotpSetupContext(
            csrf=self._desk.csrf(visit), uri=enrolment.uri, secret=enrolment.secret, problem=told(trouble)
        )
        return self._desk.show(request, context, status=status)

    # -- passkeys -------------------------------------------------------------------------------------

    async def show_passkey(self, request: Request, visit: Visit) -> Response:
        if not self._passkeys.are_possible:
            raise PasskeysImpossible
        try:
            return await self._passkey_form(request, visit)
        except EmailNotVerified:
            return await self._problem(request, visit, Trouble.EMAIL_UNVERIFIED, status=MEANWHILE)

    async def add_passkey(self, request: Request, visit: Visit, form: PasskeyForm) -> Response:
        try:
            codes = await self._passkeys.register(
                visit.user,
                form.credential,
                name=form.name,
                browser=visit.browser_digest,
                origin=visit.origin,
                device=visit.device,
            )
        except (PasskeyRefused, PasskeyTaken):
            return await self._passkey_form(request, visit, form.name, Trouble.PASSKEY_FAILED, status=REFUSED)
        except BadPasskeyName:
            return await self._passkey_form(request, visit, form.name, Trouble.PASSKEY_NAME, status=NOT_YET)
        except TooManyPasskeys:
            return await self._passkey_form(request, visit, form.name, Trouble.PASSKEYS_FULL, status=MEANWHILE)
        return self._added(request, visit, codes, Notice.PASSKEY_ADDED)

    async def rename_passkey(self, request: Request, visit: Visit, form: RenameForm) -> Response:
        try:
            await self._passkeys.rename(visit.user, form.passkey_id, form.name, origin=visit.origin)
        except BadPasskeyName:
            return await self._problem(request, visit, Trouble.PASSKEY_NAME, status=NOT_YET)
        except FactorMissing:
            return await self._meanwhile(request, visit)
        return self._desk.done(Notice.PASSKEY_RENAMED)

    async def remove_passkey(self, request: Request, visit: Visit, form: RemoveForm) -> Response:
        if visit.user.password_hash is None and visit.user.passkeys == 1:
            return await self._problem(request, visit, Trouble.ONLY_WAY_IN, status=MEANWHILE)
        try:
            await self._passkeys.remove(visit.user, form.passkey_id, origin=visit.origin, device=visit.device)
        except FactorMissing:
            return await self._meanwhile(request, visit)
        return self._desk.done(Notice.PASSKEY_REMOVED)

    async def _passkey_form(
        self,
        request: Request,
        visit: Visit,
        name: str = "",
        trouble: Trouble | None = None,
        *,
        status: int = 200,
    ) -> Response:
        options = await self._passkeys.registration_options(visit.user, browser=visit.browser_digest)
        context = PasskeySetupContext(
            csrf=self._desk.csrf(visit), passkey_options=options, name=name, problem=told(trouble)
        )
        return self._desk.show(request, context, status=status)

    # -- codes ----------------------------------------------------------------------------------------

    async def switch_email_code(self, request: Request, visit: Visit, form: SwitchForm) -> Response:
        try:
            if form.on == "0":
                await self._email_codes.disable(visit.user, origin=visit.origin, device=visit.device)
                return self._desk.done(Notice.EMAIL_CODE_OFF)
            codes = await self._email_codes.enable(visit.user, origin=visit.origin, device=visit.device)
        except EmailNotVerified:
            return await self._problem(request, visit, Trouble.EMAIL_UNVERIFIED, status=MEANWHILE)
        except (FactorExists, FactorMissing):
            return await self._meanwhile(request, visit)
        return self._added(request, visit, codes, Notice.EMAIL_CODE_ON)

    async def renew_codes(self, request: Request, visit: Visit, form: Guarded) -> Response:  # noqa: ARG002
        try:
            codes = await self._recovery.renew(visit.user, origin=visit.origin, device=visit.device)
        except FactorMissing:
            return await self._problem(request, visit, Trouble.NO_FACTOR, status=MEANWHILE)
        return self._show_codes(request, visit, codes)

    def _added(self, request: Request, visit: Visit, codes: Sequence[str], notice: Notice) -> Response:
        """The first factor brings recovery codes, which are shown now or never."""
        return self._show_codes(request, visit, codes) if codes else self._desk.done(notice)

    def _show_codes(self, request: Request, visit: Visit, codes: Sequence[str]) -> Response:
        context = RecoveryCodesContext(codes=tuple(codes), login=visit.user.login or visit.user.nick)
        return self._desk.show(request, context)

    # -- what goes wrong ------------------------------------------------------------------------------

    async def _meanwhile(self, request: Request, visit: Visit) -> Response:
        return await self._problem(request, visit, Trouble.CHANGED_MEANWHILE, status=MEANWHILE)

    async def _problem(self, request: Request, visit: Visit, trouble: Trouble, *, status: int) -> Response:
        problem = Problem(what=trouble)
        return await self._account.with_problem(request, visit, Section.FACTORS, problem, status=status)

    def endpoints(self) -> list[Endpoint]:
        shown, posted = self._desk.shown, self._desk.posted
        return [
            shown(Path.TOTP, self.show_totp, name="totp.show", summary="Set up an authenticator app", fresh=True),
            posted(
                Path.TOTP,
                CodeForm,
                self.confirm_totp,
                name="totp.confirm",
                summary="Turn on the authenticator app",
                fresh=True,
            ),
            posted(
                Path.TOTP_REMOVE,
                Guarded,
                self.remove_totp,
                name="totp.remove",
                summary="Remove the authenticator app",
                fresh=True,
            ),
            shown(
                Path.PASSKEY,
                self.show_passkey,
                name="passkey.show",
                summary="Show the passkey setup page",
                fresh=True,
            ),
            posted(
                Path.PASSKEY, PasskeyForm, self.add_passkey, name="passkey.add", summary="Add a passkey", fresh=True
            ),
            posted(
                Path.PASSKEY_RENAME,
                RenameForm,
                self.rename_passkey,
                name="passkey.rename",
                summary="Rename a passkey",
            ),
            posted(
                Path.PASSKEY_REMOVE,
                RemoveForm,
                self.remove_passkey,
                name="passkey.remove",
                summary="Remove a passkey",
                fresh=True,
            ),
            posted(
                Path.EMAIL_CODE,
                SwitchForm,
                self.switch_email_code,
                name="email_code.switch",
                summary="Turn email codes on or off",
                fresh=True,
            ),
            posted(
                Path.RECOVERY_CODES,
                Guarded,
                self.renew_codes,
                name="recovery_codes.renew",
                summary="Create recovery codes",
                fresh=True,
            ),
        ]


def told(trouble: Trouble | None) -> Problem | None:
    return None if trouble is None else Problem(what=trouble)
