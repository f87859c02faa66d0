"""The second step of a sign-in: the second factor."""

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.phones.numbers import masked_phone
from gatehouse.accounts.second_factors.email_codes import EmailCodes
from gatehouse.accounts.second_factors.model import (
    EnabledFactors,
    Factor,
    FactorMissing,
    PasskeyRefused,
    SecondFactorWrong,
    enabled_factors,
)
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.phone_codes import PhoneCodes
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.session_model import passkey_proof, stored_factor
from gatehouse.accounts.store import AccountStore
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import TooMany
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import (
    FIRST_PROVED,
    FlowStep,
    SignInFlow,
    SignInFlowGone,
    first_factor_is_valid,
    has_email_proof,
    has_password_proof,
    source_to_count,
)
from gatehouse.web.http.browser import Browser, BrowserSessions, device_name
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.contexts import SecondFactorContext
from gatehouse.web.pages.forms import FORBIDDEN
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.sign_in_flow import FlowForm, SignInCompletion, SignInFlowPages, step_address
from gatehouse.web.pages.vocabulary import FactorMethod, Notice, PageProblem, ProblemKind

TOO_MANY_REQUESTS: Final = 429
SENT_MARK: Final = "&sent=1"


class FactorQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str
    method: FactorMethod | None = None
    sent: str = ""


class FactorForm(FlowForm, frozen=True, kw_only=True):
    method: FactorMethod | None = None
    otp: SecretText = ""
    credential: str = ""


class MethodForm(FlowForm, frozen=True, kw_only=True):
    method: FactorMethod


class SecondFactorStep(msgspec.Struct, frozen=True, kw_only=True):
    """The person and the flow at the second step."""

    browser: Browser
    handle: str
    flow: SignInFlow
    user: User
    factors: EnabledFactors
    refuses_phone: bool = False  # two accounts are to become one, which a code by text message is no proof for


class SecondFactorPages(Struct, kw_only=True, eq=False):
    accounts: AccountStore
    factors: SecondFactors
    email_codes: EmailCodes
    phone_codes: PhoneCodes
    passkeys: Passkeys
    sign_in_flows: SignInFlows
    completion: SignInCompletion
    browsers: BrowserSessions
    flow_pages: SignInFlowPages

    async def show(self, request: Request) -> Response:
        query = read_query(request, FactorQuery)
        try:
            step = await self._find_step(await self.browsers.read(request), query.interaction)
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, query.interaction)
        notice = Notice.CODE_SENT if query.sent else None
        return await self._form_page(request, step, query.method, notice=notice)

    async def submit(self, request: Request) -> Response:
        return await self.flow_pages.handle_form(request, FactorForm, self._try_factor)

    async def _try_factor(self, request: Request, browser: Browser, form: FactorForm) -> Response:
        step = await self._find_step(browser, form.interaction)
        try:
            used, proved = await self._prove(request, step, form)
        except (SecondFactorWrong, PasskeyRefused) as refused:
            await self._count_failure(request, step)
            step = await self._find_step(browser, form.interaction)  # a wrong code may have closed the phone
            problem = PageProblem(what=problem_of_failure(form, step))
            signals = self.passkeys.signal_after(refused)
            return await self._form_page(
                request, step, form.method, problem=problem, status=FORBIDDEN, passkey_signals=signals
            )
        except TooMany as blocked:
            return await self._throttled_page(request, step, form.method, blocked)
        has_password = has_password_proof(step.flow)
        auth = SignInMethod.PASSKEY if used is Factor.PASSKEY and not has_password else SignInMethod.TWO_STEP
        return await self.completion.open_session(
            request,
            step.browser,
            step.user,
            auth,
            step.handle,
            second_factor=stored_factor(used.value, has_password=has_password),
            proved=[name for name in (step.flow.ask.get(FIRST_PROVED, ""), proved) if name],
        )

    async def _count_failure(self, request: Request, step: SecondFactorStep) -> None:
        address = origin_of(request, step.user.user_id).address
        await self.sign_in_flows.count_failure(step.flow, address=address)

    async def choose_method(self, request: Request) -> Response:
        """Show another method; choosing email or the phone sends a code."""
        return await self.flow_pages.handle_form(request, MethodForm, self._choose_method)

    async def _choose_method(self, request: Request, browser: Browser, form: MethodForm) -> Response:
        step = await self._find_step(browser, form.interaction)
        address = f"{step_address(FlowStep.FACTOR, step.handle)}&method={form.method}"
        if form.method not in (FactorMethod.EMAIL, FactorMethod.PHONE):
            return see_other(address)
        try:
            await self._send_code(request, step, form.method)
        except FactorMissing:
            if form.method is FactorMethod.EMAIL:
                raise
            return see_other(step_address(FlowStep.FACTOR, step.handle))  # which says what else is accepted
        except TooMany as blocked:
            return await self._throttled_page(request, step, form.method, blocked)
        return see_other(address + SENT_MARK)

    async def _throttled_page(
        self, request: Request, step: SecondFactorStep, method: FactorMethod | None, blocked: TooMany
    ) -> Response:
        problem = PageProblem(what=ProblemKind.THROTTLED, seconds=blocked.retry_after)
        return await self._form_page(request, step, method, problem=problem, status=TOO_MANY_REQUESTS)

    async def _prove(self, request: Request, step: SecondFactorStep, form: FactorForm) -> tuple[Factor, str]:
        """Return the factor, and how `Session.proved` names it."""
        origin = origin_of(request, step.user.user_id)
        if form.credential:
            browser = sha256(step.browser.browser_id)
            passkey = await self.passkeys.authenticate(
                form.credential, browser=browser, origin=origin, user=step.user
            )
            return Factor.PASSKEY, passkey_proof(passkey.passkey_id)
        method = None if form.method in (None, FactorMethod.PASSKEY) else Factor(form.method)
        used = await self.factors.verify(
            step.user,
            form.otp.strip(),
            method,
            origin=origin,
            device=device_name(step.browser.agent),
            browser=b"" if step.refuses_phone else sha256(step.browser.browser_id),
        )
        return used, used.value

    async def _send_code(self, request: Request, step: SecondFactorStep, method: FactorMethod) -> None:
        origin = origin_of(request, step.user.user_id)
        if method is FactorMethod.PHONE:
            if step.refuses_phone:
                raise FactorMissing
            await self.phone_codes.send(
                step.user,
                browser=sha256(step.browser.browser_id),
                source=source_to_count(step.flow, caller_address_of(request.scope).source),
                origin=origin,
            )
            return
        await self.email_codes.send(step.user, origin=origin, device=device_name(step.browser.agent))

    async def _find_step(self, browser: Browser, handle: str) -> SecondFactorStep:
        flow = await self.sign_in_flows.find(handle, browser=browser.browser_id)
        if flow.user_id is None or flow.step is not FlowStep.FACTOR:
            raise SignInFlowGone
        user = await self.accounts.user(flow.user_id)
        if has_email_proof(flow):  # a code by email would prove the same mailbox again
            user = replace(user, email_code=False)
        factors = await self.factors.load_factors(user)
        if user.blocked or not first_factor_is_valid(flow, user) or not enabled_factors(user):
            raise SignInFlowGone
        step = SecondFactorStep(browser=browser, handle=handle, flow=flow, user=user, factors=factors)
        if Factor.PHONE not in factors.methods or not (await self.sign_in_flows.destination(flow)).guest:
            return step
        methods = tuple(method for method in factors.methods if method is not Factor.PHONE)
        return replace(step, factors=replace(factors, methods=methods), refuses_phone=True)

    async def _form_page(
        self,
        request: Request,
        step: SecondFactorStep,
        chosen: FactorMethod | None,
        *,
        problem: PageProblem | None = None,
        notice: Notice | None = None,
        status: int = 200,
        passkey_signals: str = "",
    ) -> Response:
        destination = await self.sign_in_flows.destination(step.flow)
        offered = tuple(FactorMethod(factor) for factor in step.factors.accepted_factors)
        method = chosen if chosen in offered else next(iter(offered), None)
        context = SecondFactorContext(
            csrf=self.browsers.csrf_token(step.browser),
            interaction=step.handle,
            method=method,
            others=tuple(other for other in offered if other is not method),
            application=destination.application,
            sent_to=address_of_code(step.user, method),
            passkey_options=await self._passkey_options(step) if method is FactorMethod.PASSKEY else "",
            is_sent=notice is Notice.CODE_SENT or problem is not None,
            problem=problem,
            notice=notice,
            passkey_signals=passkey_signals,
        )
        return self.flow_pages.show(
            request, step.browser, destination, context, status=status, account_lang=step.user.lang
        )

    async def _passkey_options(self, step: SecondFactorStep) -> str:
        return await self.passkeys.sign_in_options(browser=sha256(step.browser.browser_id), user=step.user)

    def endpoints(self) -> list[Endpoint]:
        shown = Endpoint(
            name="second_factor.show",
            path=Path.SECOND_FACTOR,
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.PAGE,
            rate_class=RateClass.LOGIN,
            section="pages",
            summary="Show the second factor page",
            hidden=True,
        )
        posted = replace(shown, methods=("POST",))
        return [
            shown,
            replace(posted, name="second_factor.submit", handler=self.submit, summary="Verify a second factor"),
            replace(
                posted,
                name="second_factor.choose",
                path=Path.SECOND_FACTOR_METHOD,
                handler=self.choose_method,
                summary="Choose another second factor",
            ),
        ]


def problem_of_failure(form: FactorForm, step: SecondFactorStep) -> ProblemKind:
    if form.credential:
        return ProblemKind.PASSKEY_FAILED
    is_closed = form.method is FactorMethod.PHONE and Factor.PHONE not in step.factors.methods
    return ProblemKind.PHONE_CLOSED if is_closed else ProblemKind.WRONG_CODE


def address_of_code(user: User, method: FactorMethod | None) -> str:
    """Return where a code is sent, partly hidden; empty for methods that send none."""
    match method:
        case FactorMethod.EMAIL:
            return masked_email(user.login or "")
        case FactorMethod.PHONE:
            return masked_phone(user.phone)
        case _:
            return ""


def masked_email(login: str) -> str:
    """Return the address partly hidden: a…@studio.example."""
    local, _, domain = login.rpartition("@")
    return f"{local[:1]}…@{domain}"
