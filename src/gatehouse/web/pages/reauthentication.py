"""Asks a signed-in person to authenticate again, and returns to the action they started."""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.email_sign_in import EmailSignIn
from gatehouse.accounts.errors import SignInRefused
from gatehouse.accounts.model import EnabledMethods
from gatehouse.accounts.own_account.model import ReauthenticationClient, ReauthenticationInput, SessionEnded
from gatehouse.accounts.own_account.reauthentication import Reauthentication
from gatehouse.accounts.second_factors.email_codes import EmailCodes
from gatehouse.accounts.second_factors.model import Factor, PasskeyRefused, PasskeyUnknown, SecondFactorWrong
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.sign_in import DeviceCookies
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.errors import TooMany
from gatehouse.sign_in_flow.account_sign_in import ACCOUNT_KIND as ACCOUNT
from gatehouse.sign_in_flow.account_sign_in import RETURN_TO
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import FlowStep
from gatehouse.web.console.paths import is_console_page
from gatehouse.web.http.browser import BrowserSessions
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.account_request import (
    RETURN_ADDRESSES,
    AccountRequest,
    AccountView,
    NoticeCookie,
    next_of_setup,
)
from gatehouse.web.pages.contexts import ReauthenticationContext
from gatehouse.web.pages.forms import FORBIDDEN, CsrfForm
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.sign_in_flow import step_address
from gatehouse.web.pages.vocabulary import FactorMethod, Notice, PageProblem, ProblemKind

TOO_MANY_REQUESTS: Final = 429

PROOF_PROBLEMS: Final = {
    SignInRefused: ProblemKind.WRONG_PASSWORD,
    SecondFactorWrong: ProblemKind.WRONG_CODE,
    PasskeyRefused: ProblemKind.PASSKEY_FAILED,
    PasskeyUnknown: ProblemKind.PASSKEY_FAILED,
}


class ReauthenticationQuery(msgspec.Struct, frozen=True, kw_only=True):
    next: str = ""


class ReauthenticationForm(CsrfForm, frozen=True, kw_only=True):
    interaction: str = ""  # the address of the action to return to
    password: SecretText = ""
    otp: SecretText = ""
    credential: str = ""
    method: FactorMethod | None = None  # `email`: send a code


class ReauthenticationPage(Struct, kw_only=True, eq=False):
    confirmation: Reauthentication
    email_codes: EmailCodes
    passkeys: Passkeys
    email_sign_in: EmailSignIn
    methods: Callable[[], EnabledMethods]
    devices: DeviceCookies
    sign_in_flows: SignInFlows
    browsers: BrowserSessions
    view: AccountView
    notices: NoticeCookie

    async def show(self, request: Request, account: AccountRequest) -> Response:
        goal = read_query(request, ReauthenticationQuery).next
        if self.view.is_fresh(account):
            return see_other(return_address(goal))
        return await self._form_page(request, account, goal)

    async def submit(self, request: Request, account: AccountRequest, form: ReauthenticationForm) -> Response:
        try:
            if form.method is FactorMethod.EMAIL:
                return await self._send_code(account, form.interaction)
            return await self._prove(account, form)
        except (SignInRefused, SecondFactorWrong, PasskeyRefused) as error:
            problem = PageProblem(what=PROOF_PROBLEMS[type(error)])
            signals = self.passkeys.signal_after(error)
            return await self._form_page(
                request, account, form.interaction, problem, status=FORBIDDEN, passkey_signals=signals
            )
        except TooMany as closed:
            problem = PageProblem(what=ProblemKind.THROTTLED, seconds=closed.retry_after)
            answer = await self._form_page(request, account, form.interaction, problem, status=TOO_MANY_REQUESTS)
            answer.headers["Retry-After"] = str(closed.retry_after)
            return answer
        except SessionEnded:
            return see_other(Path.SIGN_IN)

    async def _prove(self, account: AccountRequest, form: ReauthenticationForm) -> Response:
        secret = await self.confirmation.reauthenticate(
            account.signed_in,
            ReauthenticationInput(password=form.password, otp=form.otp, credential=form.credential),
            reauthentication_client(account),
        )
        device = self.devices.issue(account.user, account.browser.device)
        back = see_other(return_address(form.interaction))
        return self.browsers.set_session_cookie(back, secret, device, stays=account.browser.stays)

    async def _send_code(self, account: AccountRequest, goal: str) -> Response:
        await self.email_codes.send(account.user, origin=account.origin, device=account.device)
        again = self.view.reauthenticate(goal if is_return_target(goal) else Path.ACCOUNT)
        return self.notices.set(again, Notice.CODE_SENT)

    async def _form_page(
        self,
        request: Request,
        account: AccountRequest,
        goal: str,
        problem: PageProblem | None = None,
        *,
        status: int = 200,
        passkey_signals: str = "",
    ) -> Response:
        user, notice = account.user, self.notices.read(request)
        methods = await self.confirmation.methods_for(user)
        if methods.lacks_factor:
            problem = PageProblem(what=ProblemKind.PHONE_NOT_ENOUGH)
        elif methods.is_empty:
            return await self._use_other_method(account, goal)
        by_passkey = Factor.PASSKEY in methods.factors
        context = ReauthenticationContext(
            csrf=self.view.csrf_token(account),
            interaction=goal if is_return_target(goal) else "",
            login=user.login or user.username or user.nick,
            has_password=methods.password and methods.can_be_typed,
            methods=tuple(FactorMethod(factor) for factor in methods.factors),
            passkey_options=await self._passkey_options(account) if by_passkey else "",
            problem=problem,
            notice=notice,
            passkey_signals=passkey_signals,
        )
        page = self.view.show(request, context, status=status)
        return page if notice is None else self.notices.clear(page)

    async def _use_other_method(self, account: AccountRequest, goal: str) -> Response:
        """Redirect a person without password and factor: to sign in again, or to get a reset link."""
        user = account.user
        if not self.methods().has_identity(user) and not await self.email_sign_in.is_available_to(user):
            return see_other(Path.FORGOT)
        ask = {RETURN_TO: return_address(goal)}
        handle = await self.sign_in_flows.start(ACCOUNT, ask, browser=account.browser.browser_id)
        return see_other(step_address(FlowStep.LOGIN, handle))

    async def _passkey_options(self, account: AccountRequest) -> str:
        return await self.passkeys.sign_in_options(browser=account.browser_digest, user=account.user)

    def endpoints(self) -> list[Endpoint]:
        return [
            self.view.page(Path.CONFIRM, self.show, name="confirm.show", summary="Show the re-authentication page"),
            self.view.form(
                Path.CONFIRM,
                ReauthenticationForm,
                self.submit,
                name="confirm.submit",
                summary="Re-authenticate",
                rate_class=RateClass.LOGIN,
            ),
        ]


def is_return_target(goal: str) -> bool:
    return goal in RETURN_ADDRESSES or is_console_page(goal) or bool(next_of_setup(goal))


def return_address(goal: str) -> str:
    return goal if is_console_page(goal) or next_of_setup(goal) else RETURN_ADDRESSES.get(goal, Path.ACCOUNT)


def reauthentication_client(account: AccountRequest) -> ReauthenticationClient:
    return ReauthenticationClient(
        source=account.source,
        device_cookie=account.browser.device,
        browser=account.browser_digest,
        device=account.device,
        origin=account.origin,
    )
