"""Second factors on the account page: set up, rename, remove; recovery codes."""

from collections.abc import Sequence
from functools import partial
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.email_sign_in import EmailSignIn
from gatehouse.accounts.errors import LastSignInMethod
from gatehouse.accounts.phones.model import PhonesOff
from gatehouse.accounts.second_factors.codes import RecoveryCodes
from gatehouse.accounts.second_factors.email_codes import EmailCodes
from gatehouse.accounts.second_factors.model import (
    BadPasskeyName,
    EmailNotVerified,
    EnrollmentGone,
    FactorExists,
    FactorMissing,
    PasskeyRefused,
    PasskeyTaken,
    SameMailbox,
    SecondFactorWrong,
    TooManyPasskeys,
)
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.phone_codes import PhoneCodes
from gatehouse.accounts.second_factors.totp import Totp
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.errors import Refused
from gatehouse.web.console.paths import is_console_page
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.account import AccountPage
from gatehouse.web.pages.account_contexts import RecoveryCodesContext
from gatehouse.web.pages.account_request import AccountRequest, AccountView, section_address, setup_address
from gatehouse.web.pages.contexts import PasskeySetupContext, TotpSetupContext
from gatehouse.web.pages.forms import BAD_REQUEST, FORBIDDEN, CsrfForm
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import AccountSection, Notice, PageProblem, ProblemKind

CONFLICT: Final = 409


class PasskeysImpossible(Refused):
    public = "Passkeys need a host name, but this installation uses an IP address."


class FactorSetupForm(CsrfForm, frozen=True, kw_only=True):
    next: str = ""  # the page of the console that asked for a factor


class TotpCodeForm(FactorSetupForm, frozen=True, kw_only=True):
    otp: SecretText


class PasskeySetupForm(FactorSetupForm, frozen=True, kw_only=True):
    name: str
    credential: str


class RenamePasskeyForm(CsrfForm, frozen=True, kw_only=True):
    passkey_id: str
    name: str


class RemovePasskeyForm(CsrfForm, frozen=True, kw_only=True):
    passkey_id: str


class CodeSwitchForm(CsrfForm, frozen=True, kw_only=True):
    on: Literal["0", "1"]


class FactorForms(Struct, kw_only=True, eq=False):
    totp: Totp
    passkeys: Passkeys
    email_codes: EmailCodes
    phone_codes: PhoneCodes
    recovery: RecoveryCodes
    email_sign_in: EmailSignIn
    account: AccountPage
    view: AccountView

    # -- authenticator app ----------------------------------------------------------------------------

    async def show_totp(self, request: Request, account: AccountRequest) -> Response:
        """Show the pending secret, the same one until its first code confirms it."""
        if account.user.sealed_totp is not None:
            return see_other(section_address(AccountSection.FACTORS))
        try:
            return await self._totp_form(request, account, own_next(request.query_params.get("next", "")))
        except EmailNotVerified:
            return await self._problem_page(request, account, ProblemKind.EMAIL_UNVERIFIED, status=CONFLICT)

    async def confirm_totp(self, request: Request, account: AccountRequest, form: TotpCodeForm) -> Response:
        if account.user.sealed_totp is not None:
            return see_other(section_address(AccountSection.FACTORS))
        try:
            codes = await self.totp.confirm_enrollment(
                account.user, form.otp.strip(), origin=account.origin, device=account.device
            )
        except SecondFactorWrong:
            back = own_next(form.next)
            return await self._totp_form(request, account, back, ProblemKind.WRONG_CODE, status=FORBIDDEN)
        except EnrollmentGone:
            return see_other(setup_address(Path.TOTP, form.next))
        return self._factor_added(request, account, codes, Notice.TOTP_ADDED, own_next(form.next))

    async def remove_totp(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        try:
            await self.totp.remove(account.user, origin=account.origin, device=account.device)
        except FactorMissing:
            return await self._conflict(request, account)
        return self.view.redirect_with_notice(Notice.TOTP_REMOVED)

    async def _totp_form(
        self,
        request: Request,
        account: AccountRequest,
        next_page: str,
        trouble: ProblemKind | None = None,
        *,
        status: int = 200,
    ) -> Response:
        enrolment = await self.totp.pending_enrollment(account.user) or await self.totp.begin_enrollment(account.user)
        context = TotpSetupContext(
            csrf=self.view.csrf_token(account),
            uri=enrolment.uri,
            secret=enrolment.secret,
            next=next_page,
            other=setup_address(Path.PASSKEY, next_page) if self.passkeys.are_supported else "",
            problem=problem_from(trouble),
        )
        return self.view.show(request, context, status=status)

    # -- passkeys -------------------------------------------------------------------------------------

    async def show_passkey(self, request: Request, account: AccountRequest) -> Response:
        if not self.passkeys.are_supported:
            raise PasskeysImpossible
        try:
            return await self._passkey_form(request, account, own_next(request.query_params.get("next", "")))
        except EmailNotVerified:
            return await self._problem_page(request, account, ProblemKind.EMAIL_UNVERIFIED, status=CONFLICT)

    async def add_passkey(self, request: Request, account: AccountRequest, form: PasskeySetupForm) -> Response:
        again = partial(self._passkey_form, request, account, own_next(form.next), form.name)
        try:
            codes = await self.passkeys.register(
                account.user,
                form.credential,
                name=form.name,
                browser=account.browser_digest,
                origin=account.origin,
                device=account.device,
            )
        except (PasskeyRefused, PasskeyTaken):
            return await again(ProblemKind.PASSKEY_FAILED, status=FORBIDDEN)
        except BadPasskeyName:
            return await again(ProblemKind.PASSKEY_NAME, status=BAD_REQUEST)
        except TooManyPasskeys:
            return await again(ProblemKind.PASSKEYS_FULL, status=CONFLICT)
        return self._factor_added(request, account, codes, Notice.PASSKEY_ADDED, own_next(form.next))

    async def rename_passkey(self, request: Request, account: AccountRequest, form: RenamePasskeyForm) -> Response:
        try:
            await self.passkeys.rename(account.user, form.passkey_id, form.name, origin=account.origin)
        except BadPasskeyName:
            return await self._problem_page(request, account, ProblemKind.PASSKEY_NAME, status=BAD_REQUEST)
        except FactorMissing:
            return await self._conflict(request, account)
        return self.view.redirect_with_notice(Notice.PASSKEY_RENAMED)

    async def remove_passkey(self, request: Request, account: AccountRequest, form: RemovePasskeyForm) -> Response:
        try:
            await self.passkeys.remove(
                account.user,
                form.passkey_id,
                origin=account.origin,
                device=account.device,
                email_counts=await self.email_sign_in.is_available_to(
                    replace(account.user, passkeys=account.user.passkeys - 1)
                ),
            )
        except LastSignInMethod:
            return await self._problem_page(request, account, ProblemKind.LAST_SIGN_IN_METHOD, status=CONFLICT)
        except FactorMissing:
            return await self._conflict(request, account)
        return self.view.redirect_with_notice(Notice.PASSKEY_REMOVED)

    async def _passkey_form(
        self,
        request: Request,
        account: AccountRequest,
        next_page: str,
        name: str = "",
        trouble: ProblemKind | None = None,
        *,
        status: int = 200,
    ) -> Response:
        options = await self.passkeys.registration_options(account.user, browser=account.browser_digest)
        context = PasskeySetupContext(
            csrf=self.view.csrf_token(account),
            passkey_options=options,
            name=name or account.device,
            next=next_page,
            other="" if account.user.sealed_totp is not None else setup_address(Path.TOTP, next_page),
            problem=problem_from(trouble),
        )
        return self.view.show(request, context, status=status)

    # -- codes ----------------------------------------------------------------------------------------

    async def switch_email_code(self, request: Request, account: AccountRequest, form: CodeSwitchForm) -> Response:
        try:
            if form.on == "0":
                await self.email_codes.disable(account.user, origin=account.origin, device=account.device)
                return self.view.redirect_with_notice(Notice.EMAIL_CODE_OFF)
            codes = await self.email_codes.enable(account.user, origin=account.origin, device=account.device)
        except EmailNotVerified:
            return await self._problem_page(request, account, ProblemKind.EMAIL_UNVERIFIED, status=CONFLICT)
        except SameMailbox:
            return await self._problem_page(request, account, ProblemKind.SAME_MAILBOX, status=CONFLICT)
        except (FactorExists, FactorMissing):
            return await self._conflict(request, account)
        return self._factor_added(request, account, codes, Notice.EMAIL_CODE_ON)

    async def switch_phone_code(self, request: Request, account: AccountRequest, form: CodeSwitchForm) -> Response:
        try:
            if form.on == "0":
                await self.phone_codes.disable(account.user, origin=account.origin, device=account.device)
                return self.view.redirect_with_notice(Notice.PHONE_FACTOR_OFF)
            codes = await self.phone_codes.enable(account.user, origin=account.origin, device=account.device)
        except PhonesOff:
            return await self._problem_page(request, account, ProblemKind.PHONE_CODES_OFF, status=FORBIDDEN)
        except (FactorExists, FactorMissing):
            return await self._conflict(request, account)
        return self._factor_added(request, account, codes, Notice.PHONE_FACTOR_ON)

    async def open_phone(
        self,
        request: Request,  # noqa: ARG002
        account: AccountRequest,
        form: CsrfForm,  # noqa: ARG002
    ) -> Response:
        """Open the phone after too many wrong codes: recent authentication is always by another factor."""
        await self.phone_codes.open(account.user, origin=account.origin)
        return self.view.redirect_with_notice(Notice.PHONE_FACTOR_OPENED)

    async def renew_codes(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        try:
            codes = await self.recovery.renew(account.user, origin=account.origin, device=account.device)
        except FactorMissing:
            return await self._problem_page(request, account, ProblemKind.NO_FACTOR, status=CONFLICT)
        return self._show_codes(request, account, codes)

    def _factor_added(
        self, request: Request, account: AccountRequest, codes: Sequence[str], notice: Notice, next_page: str = ""
    ) -> Response:
        """Continue with the next page, or show the recovery codes that the first factor created, once."""
        if codes:
            return self._show_codes(request, account, codes, next_page)
        return see_other(next_page) if next_page else self.view.redirect_with_notice(notice)

    def _show_codes(
        self, request: Request, account: AccountRequest, codes: Sequence[str], next_page: str = ""
    ) -> Response:
        context = RecoveryCodesContext(
            codes=tuple(codes),
            login=account.user.login or account.user.nick,
            next=next_page or section_address(AccountSection.FACTORS),
        )
        return self.view.show(request, context)

    # -- errors ---------------------------------------------------------------------------------------

    async def _conflict(self, request: Request, account: AccountRequest) -> Response:
        return await self._problem_page(request, account, ProblemKind.CHANGED_MEANWHILE, status=CONFLICT)

    async def _problem_page(
        self, request: Request, account: AccountRequest, trouble: ProblemKind, *, status: int
    ) -> Response:
        problem = PageProblem(what=trouble)
        return await self.account.show_problem(request, account, AccountSection.FACTORS, problem, status=status)

    def endpoints(self) -> list[Endpoint]:
        shown, posted = self.view.page, self.view.form
        return [
            shown(Path.TOTP, self.show_totp, name="totp.show", summary="Set up an authenticator app", fresh=True),
            posted(
                Path.TOTP,
                TotpCodeForm,
                self.confirm_totp,
                name="totp.confirm",
                summary="Turn on the authenticator app",
                fresh=True,
            ),
            posted(
                Path.TOTP_REMOVE,
                CsrfForm,
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
                Path.PASSKEY,
                PasskeySetupForm,
                self.add_passkey,
                name="passkey.add",
                summary="Add a passkey",
                fresh=True,
            ),
            posted(
                Path.PASSKEY_RENAME,
                RenamePasskeyForm,
                self.rename_passkey,
                name="passkey.rename",
                summary="Rename a passkey",
            ),
            posted(
                Path.PASSKEY_REMOVE,
                RemovePasskeyForm,
                self.remove_passkey,
                name="passkey.remove",
                summary="Remove a passkey",
                fresh=True,
            ),
            posted(
                Path.EMAIL_CODE,
                CodeSwitchForm,
                self.switch_email_code,
                name="email_code.switch",
                summary="Turn email codes on or off",
                fresh=True,
            ),
            posted(
                Path.PHONE_FACTOR,
                CodeSwitchForm,
                self.switch_phone_code,
                name="phone_code.switch",
                summary="Turn codes by text message on or off",
                fresh=True,
            ),
            posted(
                Path.PHONE_FACTOR_OPEN,
                CsrfForm,
                self.open_phone,
                name="phone_code.open",
                summary="Accept codes by text message again after wrong ones",
                fresh=True,
            ),
            posted(
                Path.RECOVERY_CODES,
                CsrfForm,
                self.renew_codes,
                name="recovery_codes.renew",
                summary="Create recovery codes",
                fresh=True,
            ),
        ]


def own_next(address: str) -> str:
    return address if is_console_page(address) else ""


def problem_from(trouble: ProblemKind | None) -> PageProblem | None:
    return None if trouble is None else PageProblem(what=trouble)
