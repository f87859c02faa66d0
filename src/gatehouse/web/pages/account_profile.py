"""Forms of the account page: profile, user name, language and theme, email address, password."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import (
    BadAccount,
    LastSignInMethod,
    SignInRefused,
    UserChanged,
    UsernameChangedRecently,
    UsernameTaken,
)
from gatehouse.accounts.model import OWN_FIELDS
from gatehouse.accounts.own_account.email_change import EmailChanges
from gatehouse.accounts.own_account.password_change import PasswordChange
from gatehouse.accounts.own_account.profile import AccountProfile
from gatehouse.accounts.sign_in import PasswordAttempt
from gatehouse.fields.derive import with_members
from gatehouse.fields.secrets import SecretText
from gatehouse.images.model import BadImage
from gatehouse.kernel.errors import BadInput, TooMany
from gatehouse.languages import LANGUAGES
from gatehouse.web.console.paths import is_console_page
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.account import AccountPage
from gatehouse.web.pages.account_request import AccountRequest, AccountView, section_address
from gatehouse.web.pages.forms import BAD_REQUEST, FORBIDDEN, CsrfForm, problem_with
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.vocabulary import AccountSection, Notice, PageProblem, ProblemKind, Theme

CONFLICT: Final = 409
TOO_MANY_REQUESTS: Final = 429
USERNAME_PROBLEMS: Final = {
    UsernameTaken: ProblemKind.USERNAME_TAKEN,
    UsernameChangedRecently: ProblemKind.USERNAME_RECENT,
}
CHANGE_PASSWORD_PATH: Final = "/.well-known/change-password"  # noqa: S105 - where password managers look


@with_members(lambda: ((one.name, str | None, None) for one in OWN_FIELDS))
class ProfileForm(CsrfForm, frozen=True, kw_only=True):
    """A field that is not sent stays as it is."""

    nick: str

    def given_fields(self) -> dict[str, str]:
        return {one.name: value for one in OWN_FIELDS if (value := one.value_of(self)) is not None}


class UsernameForm(CsrfForm, frozen=True, kw_only=True):
    username: str


class DisplayForm(CsrfForm, frozen=True, kw_only=True):
    lang: str = ""  # empty in the console's form, which changes the theme only
    theme: Theme


class EmailChangeForm(CsrfForm, frozen=True, kw_only=True):
    login: str


class PasswordChangeForm(CsrfForm, frozen=True, kw_only=True):
    current: str = ""
    password: SecretText


class ProfileForms(Struct, kw_only=True, eq=False):
    profile: AccountProfile
    new_address: EmailChanges
    new_password: PasswordChange
    account: AccountPage
    view: AccountView
    pages: PageRenderer

    async def save_profile(self, request: Request, account: AccountRequest, form: ProfileForm) -> Response:
        given = form.given_fields()
        try:
            await self.profile.save(account.user, given, account.origin)
        except BadAccount as error:
            return await self._input_problem(request, account, AccountSection.PROFILE, error, profile=given)
        return self.view.redirect_with_notice(Notice.PROFILE_SAVED)

    async def save_picture(self, request: Request, account: AccountRequest, upload: bytes) -> Response:
        try:
            await self.profile.set_picture(account.user, upload, account.origin)
        except BadImage as error:
            problem = PageProblem(what=ProblemKind.INPUT, text=error.detail)
            return await self.account.show_problem(
                request,
                account,
                AccountSection.PROFILE,
                problem,
                status=BAD_REQUEST,
                profile={},
            )
        return self.view.redirect_with_notice(Notice.PICTURE_SAVED)

    async def remove_picture(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        await self.profile.remove_picture(account.user, account.origin)
        return self.view.redirect_with_notice(Notice.PICTURE_REMOVED)

    async def change_username(self, request: Request, account: AccountRequest, form: UsernameForm) -> Response:
        try:
            await self.profile.set_username(account.user, form.username, account.origin)
        except BadAccount as error:
            return await self._input_problem(request, account, AccountSection.PROFILE, error, typed=form.username)
        except (UsernameTaken, UsernameChangedRecently) as error:
            problem = PageProblem(what=USERNAME_PROBLEMS[type(error)])
            return await self.account.show_problem(
                request, account, AccountSection.PROFILE, problem, status=CONFLICT, typed=form.username
            )
        return self.view.redirect_with_notice(Notice.USERNAME_CHANGED)

    async def change_display(self, request: Request, account: AccountRequest, form: DisplayForm) -> Response:
        """Save language and theme; `next` is the page of the console whose form changes the theme only."""
        if is_console_page(back := request.query_params.get("next", "")):
            answer = see_other(back)
            self.pages.set_preference_cookies(answer, theme=form.theme)
            return answer
        if form.lang not in LANGUAGES:
            raise BadInput("lang: this language is not available")
        await self.profile.set_language(account.user, form.lang, account.origin)
        answer = self.view.redirect_with_notice(Notice.LOOK_CHANGED)
        self.pages.set_preference_cookies(answer, lang=form.lang, theme=form.theme)
        return answer

    async def change_email(self, request: Request, account: AccountRequest, form: EmailChangeForm) -> Response:
        """Request a new address; the response is the same whether it has an account or not (LG-05)."""
        try:
            await self.new_address.request_change(
                account.user,
                form.login,
                session_id=account.session.session_id,
                source=account.source,
                origin=account.origin,
            )
        except BadAccount as error:
            return await self._input_problem(request, account, AccountSection.EMAIL, error, typed=form.login)
        return self.view.redirect_with_notice(Notice.EMAIL_CHANGE_SENT)

    async def change_password(self, request: Request, account: AccountRequest, form: PasswordChangeForm) -> Response:
        """Change the password; without a current one, recent authentication is required instead."""
        if account.user.password_hash is None and not self.view.is_fresh(account):
            return self.view.reauthenticate(Path.PASSWORD)
        try:
            await self._save_password(account, form)
        except BadAccount as error:
            return await self._input_problem(request, account, AccountSection.PASSWORD, error)
        except SignInRefused:
            return await self._password_problem(
                request, account, PageProblem(what=ProblemKind.WRONG_PASSWORD), FORBIDDEN
            )
        except TooMany as closed:
            problem = PageProblem(what=ProblemKind.THROTTLED, seconds=closed.retry_after)
            return await self._password_problem(request, account, problem, TOO_MANY_REQUESTS)
        except UserChanged:
            return await self._password_problem(
                request, account, PageProblem(what=ProblemKind.CHANGED_MEANWHILE), CONFLICT
            )
        return self.view.redirect_with_notice(Notice.PASSWORD_CHANGED)

    async def remove_password(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        try:
            await self.new_password.remove_password(account.user, origin=account.origin, device=account.device)
        except LastSignInMethod:
            problem = PageProblem(what=ProblemKind.PASSWORD_NEEDED)
            return await self._password_problem(request, account, problem, CONFLICT)
        except UserChanged:
            problem = PageProblem(what=ProblemKind.CHANGED_MEANWHILE)
            return await self._password_problem(request, account, problem, CONFLICT)
        return self.view.redirect_with_notice(Notice.PASSWORD_REMOVED)

    async def _save_password(self, account: AccountRequest, form: PasswordChangeForm) -> None:
        present = PasswordAttempt(password=form.current, source=account.source, device_cookie=account.browser.device)
        await self.new_password.change_password(
            account.signed_in, form.password, current_attempt=present, origin=account.origin, device=account.device
        )

    async def _input_problem(
        self,
        request: Request,
        account: AccountRequest,
        section: AccountSection,
        error: BadAccount,
        *,
        typed: str = "",
        profile: Mapping[str, str] | None = None,
    ) -> Response:
        return await self.account.show_problem(
            request, account, section, problem_with(error), status=BAD_REQUEST, typed=typed, profile=profile
        )

    async def _password_problem(
        self, request: Request, account: AccountRequest, problem: PageProblem, status: int
    ) -> Response:
        return await self.account.show_problem(request, account, AccountSection.PASSWORD, problem, status=status)

    def endpoints(self) -> list[Endpoint]:
        posted = self.view.form
        return [
            posted(Path.PROFILE, ProfileForm, self.save_profile, name="account.profile", summary="Save the profile"),
            self.view.upload(
                Path.PICTURE,
                self.save_picture,
                field="picture",
                name="account.picture",
                summary="Upload a picture",
            ),
            posted(
                Path.PICTURE_REMOVE,
                CsrfForm,
                self.remove_picture,
                name="account.picture_remove",
                summary="Remove the picture",
            ),
            posted(
                Path.USERNAME,
                UsernameForm,
                self.change_username,
                name="account.username",
                summary="Change the user name",
                fresh=True,
                rate_class=RateClass.LOGIN,
            ),
            posted(
                Path.LOOK,
                DisplayForm,
                self.change_display,
                name="account.look",
                summary="Change language and appearance",
            ),
            posted(
                Path.EMAIL,
                EmailChangeForm,
                self.change_email,
                name="account.email",
                summary="Request an email change",
                fresh=True,
            ),
            posted(
                Path.PASSWORD,
                PasswordChangeForm,
                self.change_password,
                name="account.password",
                summary="Change the password",
                rate_class=RateClass.LOGIN,
            ),
            posted(
                Path.PASSWORD_REMOVE,
                CsrfForm,
                self.remove_password,
                name="account.password_remove",
                summary="Remove the password",
                fresh=True,
            ),
            Endpoint(
                name="account.change_password",
                path=CHANGE_PASSWORD_PATH,
                methods=("GET",),
                handler=redirect_to_password,
                dialect=Dialect.PAGE,
                rate_class=RateClass.PUBLIC,
                section="pages",
                summary="Redirect password managers to the password form",
                hidden=True,
            ),
        ]


async def redirect_to_password(request: Request) -> Response:  # noqa: ARG001 - a handler's signature
    return see_other(section_address(AccountSection.PASSWORD))
