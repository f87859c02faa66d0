"""The phone number on the account page: a code is sent, typed here, and then the number is the account's."""

from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.phones.model import PhoneCodeGone, PhoneCodeWrong, PhonesOff, PhoneTaken
from gatehouse.accounts.phones.verification import PhoneNumbers
from gatehouse.accounts.second_factors.model import EmailNotVerified
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.errors import TooMany
from gatehouse.throttle.proof_of_work import PuzzlePurpose, PuzzleUnsolved, UnsolvedTooMany
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.account import AccountPage
from gatehouse.web.pages.account_request import AccountRequest, AccountView
from gatehouse.web.pages.forms import (
    FORBIDDEN,
    TOO_MANY_REQUESTS,
    CsrfForm,
    PublicForms,
    PuzzleForm,
    problem_with,
    status_of,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import AccountSection, Notice, PageProblem, ProblemKind

CONFLICT: Final = 409
CODE_PROBLEMS: Final = {
    PhoneCodeWrong: (ProblemKind.WRONG_CODE, FORBIDDEN),
    PhoneCodeGone: (ProblemKind.CODE_SPENT, FORBIDDEN),
    PhoneTaken: (ProblemKind.PHONE_TAKEN, CONFLICT),
}


class PhoneForm(PuzzleForm, frozen=True, kw_only=True):
    phone: str


class PhoneCodeForm(CsrfForm, frozen=True, kw_only=True):
    otp: SecretText


class PhoneForms(Struct, kw_only=True, eq=False):
    phones: PhoneNumbers
    account: AccountPage
    view: AccountView
    forms: PublicForms

    async def send_code(self, request: Request, account: AccountRequest, form: PhoneForm) -> Response:
        try:
            await self.forms.require_solution(request, PuzzlePurpose.PHONE, form)
            await self.phones.send_code(
                account.user,
                form.phone,
                browser=account.browser_digest,
                source=account.source,
                origin=account.origin,
            )
        except (BadAccount, PuzzleUnsolved, UnsolvedTooMany) as error:
            return await self._problem(request, account, problem_with(error), status_of(error), form.phone)
        except TooMany as error:
            problem = PageProblem(what=ProblemKind.THROTTLED, seconds=error.retry_after)
            return await self._problem(request, account, problem, TOO_MANY_REQUESTS, form.phone)
        except EmailNotVerified:
            problem = PageProblem(what=ProblemKind.EMAIL_UNVERIFIED)
            return await self._problem(request, account, problem, CONFLICT, form.phone)
        except PhonesOff:
            problem = PageProblem(what=ProblemKind.PHONES_OFF)
            return await self._problem(request, account, problem, FORBIDDEN, form.phone)
        return self.view.redirect_with_notice(Notice.PHONE_CODE_SENT)

    async def confirm(self, request: Request, account: AccountRequest, form: PhoneCodeForm) -> Response:
        try:
            await self.phones.confirm(
                account.user,
                form.otp,
                browser=account.browser_digest,
                origin=account.origin,
                device=account.device,
            )
        except (PhoneCodeWrong, PhoneCodeGone, PhoneTaken) as error:
            what, status = CODE_PROBLEMS[type(error)]
            return await self._problem(request, account, PageProblem(what=what), status)
        return self.view.redirect_with_notice(Notice.PHONE_VERIFIED)

    async def remove(self, request: Request, account: AccountRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        await self.phones.remove(account.user, origin=account.origin, device=account.device)
        return self.view.redirect_with_notice(Notice.PHONE_REMOVED)

    async def _problem(
        self, request: Request, account: AccountRequest, problem: PageProblem, status: int, typed: str = ""
    ) -> Response:
        return await self.account.show_problem(
            request, account, AccountSection.PHONE, problem, status=status, typed=typed
        )

    def endpoints(self) -> list[Endpoint]:
        posted = self.view.form
        return [
            posted(
                Path.PHONE,
                PhoneForm,
                self.send_code,
                name="phone.send_code",
                summary="Send a code to a phone number",
                fresh=True,
                rate_class=RateClass.LOGIN,
            ),
            posted(
                Path.PHONE_CODE,
                PhoneCodeForm,
                self.confirm,
                name="phone.confirm",
                summary="Verify a phone number",
                fresh=True,
                rate_class=RateClass.LOGIN,
            ),
            posted(
                Path.PHONE_REMOVE,
                CsrfForm,
                self.remove,
                name="phone.remove",
                summary="Remove the phone number",
                fresh=True,
            ),
        ]
