"""Name, language and look, e-mail address and password, as the account page's forms send them."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount, SignInRefused, UserChanged
from gatehouse.accounts.own.new_address import NewAddress
from gatehouse.accounts.own.new_password import NewPassword
from gatehouse.accounts.own.profile import Profile
from gatehouse.accounts.sign_in import Attempt
from gatehouse.kernel.errors import BadInput, TooMany
from gatehouse.web.dialects import Dialect
from gatehouse.web.pages.account import AccountPage
from gatehouse.web.pages.desk import NOT_YET, Guarded, refuse_if_different, trouble_with
from gatehouse.web.pages.owner_desk import OwnerDesk, Visit, place
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import Pages
from gatehouse.web.pages.vocabulary import Notice, Problem, Section, Theme, Trouble
from gatehouse.web.pages.words import LANGUAGES
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint, RateClass

REFUSED: Final = 403
MEANWHILE: Final = 409
TOO_MANY: Final = 429
CHANGE_PASSWORD: Final = "/.well-known/change-password"  # noqa: S105 - where password managers look


class NickForm(Guarded, frozen=True, kw_only=True):
    nick: str


class LookForm(Guarded, frozen=True, kw_only=True):
    lang: str
    theme: Theme


class EmailForm(Guarded, frozen=True, kw_only=True):
    login: str


class PasswordForm(Guarded, frozen=True, kw_only=True):
    current: str = ""
    password: str
    repeated: str


class ProfileForms:
    def __init__(
        self,
        *,
        profile: Profile,
        new_address: NewAddress,
        new_password: NewPassword,
        account: AccountPage,
        desk: OwnerDesk,
        pages: Pages,
    ) -> None:
        self._profile = profile
        self._new_address = new_address
        self._new_password = new_password
        self._account = account
        self._desk = desk
        self._pages = pages

    async def rename(self, request: Request, visit: Visit, form: NickForm) -> Response:
        try:
            await self._profile.rename(visit.user, form.nick, visit.origin)
        except BadAccount as error:
            return await self._wrong(request, visit, Section.PROFILE, error, typed=form.nick)
        return self._desk.done(Notice.NICK_CHANGED)

    async def change_look(self, request: Request, visit: Visit, form: LookForm) -> Response:  # noqa: ARG002
        if form.lang not in LANGUAGES:
            raise BadInput("lang: this language is not available")
        await self._profile.speak(visit.user, form.lang, visit.origin)
        answer = self._desk.done(Notice.LOOK_CHANGED)
        self._pages.remember(answer, lang=form.lang, theme=form.theme)
        return answer

    async def change_email(self, request: Request, visit: Visit, form: EmailForm) -> Response:
        """One answer whether the address has an account or not (LG-05)."""
        try:
            await self._new_address.ask(visit.user, form.login, source=visit.source, origin=visit.origin)
        except BadAccount as error:
            return await self._wrong(request, visit, Section.EMAIL, error, typed=form.login)
        return self._desk.done(Notice.EMAIL_CHANGE_SENT)

    async def change_password(self, request: Request, visit: Visit, form: PasswordForm) -> Response:
        """The present password is the proof; without one a fresh proof of another kind is needed."""
        if visit.user.password_hash is None and not self._desk.is_fresh(visit):
            return self._desk.ask_again(Path.PASSWORD)
        try:
            refuse_if_different(form.password, form.repeated)
            await self._choose(visit, form)
        except BadAccount as error:
            return await self._wrong(request, visit, Section.PASSWORD, error)
        except SignInRefused:
            return await self._refused(request, visit, Problem(what=Trouble.WRONG_PASSWORD), REFUSED)
        except TooMany as closed:
            problem = Problem(what=Trouble.THROTTLED, seconds=closed.retry_after)
            return await self._refused(request, visit, problem, TOO_MANY)
        except UserChanged:
            return await self._refused(request, visit, Problem(what=Trouble.CHANGED_MEANWHILE), MEANWHILE)
        return self._desk.done(Notice.PASSWORD_CHANGED)

    async def _choose(self, visit: Visit, form: PasswordForm) -> None:
        present = Attempt(
            login=visit.user.login or "", password=form.current, source=visit.source, device=visit.browser.device
        )
        await self._new_password.choose(
            visit.signed_in, form.password, present=present, origin=visit.origin, device=visit.device
        )

    async def _wrong(
        self, request: Request, visit: Visit, section: Section, error: BadAccount, *, typed: str = ""
    ) -> Response:
        return await self._account.with_problem(
            request, visit, section, trouble_with(error), status=NOT_YET, typed=typed
        )

    async def _refused(self, request: Request, visit: Visit, problem: Problem, status: int) -> Response:
        return await self._account.with_problem(request, visit, Section.PASSWORD, problem, status=status)

    def endpoints(self) -> list[Endpoint]:
        posted = self._desk.posted
        return [
            posted(Path.PROFILE, NickForm, self.rename, name="account.nick", summary="Change the display name"),
            posted(
                Path.LOOK, LookForm, self.change_look, name="account.look", summary="Change language and appearance"
            ),
            posted(
                Path.EMAIL,
                EmailForm,
                self.change_email,
                name="account.email",
                summary="Request an email change",
                fresh=True,
            ),
            posted(
                Path.PASSWORD,
                PasswordForm,
                self.change_password,
                name="account.password",
                summary="Change the password",
                rate_class=RateClass.LOGIN,
            ),
            Endpoint(
                name="account.change_password",
                path=CHANGE_PASSWORD,
                methods=("GET",),
                handler=to_the_password,
                dialect=Dialect.PAGE,
                rate_class=RateClass.PUBLIC,
                section="pages",
                summary="Redirect password managers to the password form",
                hidden=True,
            ),
        ]


async def to_the_password(request: Request) -> Response:  # noqa: ARG001 - a handler's signature
    return see_other(place(Section.PASSWORD))
