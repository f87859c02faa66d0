"""Pages of the browser that registered while it waits for the link: it goes on when the address is proved."""

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.address_proofs.model import EndedMethods
from gatehouse.accounts.errors import EmailCodeWrong, EmailSignInGone
from gatehouse.accounts.model import FlowReference, SignInMethod
from gatehouse.accounts.own_account.email_verification import EmailVerification, VerifiedAddress
from gatehouse.accounts.pending_registrations import PendingRegistrations, RegistrationState
from gatehouse.accounts.session_model import PASSWORD_PROOF
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.digests import sha256
from gatehouse.sign_in_flow.model import FlowStep
from gatehouse.web.http.browser import Browser, device_name
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.responses import json_response, see_other
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.contexts import (
    EmailVerifiedContext,
    ExpiredContext,
    RegisteredElsewhereContext,
    RegistrationSentContext,
    VerifyEmailContext,
)
from gatehouse.web.pages.forms import ANONYMOUS_ACTOR, FORBIDDEN, CsrfForm, PublicForms, page_endpoint
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.resuming import FlowResumption, address_of
from gatehouse.web.pages.sign_in_flow import SignInCompletion, SignInFlowPages, step_address
from gatehouse.web.pages.vocabulary import PageProblem, ProblemKind


class RegistrationCodeForm(CsrfForm, frozen=True, kw_only=True):
    login: str
    otp: SecretText
    confirmed: str = ""  # the person saw what ends


class RegistrationStateResponse(Struct, frozen=True, kw_only=True):
    state: RegistrationState


class WaitingPages(Struct, kw_only=True, eq=False):
    pending: PendingRegistrations
    proofs: EmailVerification
    completion: SignInCompletion
    resumption: FlowResumption
    flow_pages: SignInFlowPages
    forms: PublicForms

    async def show_sent(
        self,
        request: Request,
        browser: Browser,
        login: str,
        flow: FlowReference,
        problem: PageProblem | None = None,
        *,
        status: int | None = None,
    ) -> Response:
        destination = await self.resumption.destination(browser, flow, here=True)
        context = RegistrationSentContext(
            csrf=self.forms.csrf_token(browser),
            login=login,
            application=destination.application,
            logo=destination.logo,
            problem=problem,
        )
        return self.flow_pages.show(request, browser, destination, context, status=status)

    async def submit_code(self, request: Request) -> Response:
        """Finish the registration with the code that its link showed in another browser."""
        browser, form = await self.forms.read(request, RegistrationCodeForm)
        pending = await self.pending.find(sha256(browser.browser_id))
        flow = FlowReference() if pending is None else pending.flow
        try:
            verified = await self.proofs.confirm_by_code(
                form.otp,
                sha256(browser.browser_id),
                browser.signed_in,
                origin=origin_of(request, ANONYMOUS_ACTOR),
                device=device_name(browser.agent),
                confirmed=bool(form.confirmed),
            )
        except (EmailCodeWrong, EmailSignInGone) as error:
            what = ProblemKind.WRONG_CODE if isinstance(error, EmailCodeWrong) else ProblemKind.CODE_SPENT
            problem = PageProblem(what=what, field="otp")
            return await self.show_sent(request, browser, form.login, flow, problem, status=FORBIDDEN)
        if isinstance(verified, EndedMethods):
            destination = await self.resumption.destination(browser, flow, here=True)
            context = VerifyEmailContext(
                csrf=self.forms.csrf_token(browser),
                token="",
                code=form.otp,
                login=form.login,
                application=destination.application,
                logo=destination.logo,
                continues=True,
                ending=verified,
            )
            return self.flow_pages.show(request, browser, destination, context)
        return await self.go_on(request, browser, verified)

    async def go_on(self, request: Request, browser: Browser, verified: VerifiedAddress) -> Response:
        """Sign in the browser that chose the password, and go on where it began."""
        if not verified.signs_in:
            return self.forms.show(request, browser, EmailVerifiedContext(login=verified.owner.login or ""))
        handle = await self.resumption.start(browser, verified.flow, here=verified.registered_here)
        return await self.completion.accept_first_factor(
            request, browser, verified.owner, SignInMethod.LOGIN, handle, proved=PASSWORD_PROOF
        )

    async def show_state(self, request: Request) -> Response:
        browser = await self.forms.read_browser(request)
        pending = await self.pending.find(sha256(browser.browser_id))
        state = await self.pending.find_state(sha256(browser.browser_id), pending, user_of(browser))
        return json_response(RegistrationStateResponse(state=state))

    async def show_continue(self, request: Request) -> Response:
        """Go on in a window that waited, after another window of this browser has used the link."""
        browser = await self.forms.read_browser(request)
        pending = await self.pending.find(sha256(browser.browser_id))
        state = await self.pending.find_state(sha256(browser.browser_id), pending, user_of(browser))
        if pending is None or state is RegistrationState.OVER:
            return self.forms.show(request, browser, ExpiredContext(start_again=Path.SIGN_IN))
        if state is RegistrationState.WAITING:
            return await self.show_sent(request, browser, pending.login, pending.flow)
        if state is RegistrationState.CONFIRMED and user_of(browser) == pending.user_id:
            return see_other(address_of(pending.flow, here=False))
        handle = await self.resumption.start(browser, pending.flow, here=True)
        sign_in = step_address(FlowStep.LOGIN, handle) if handle else Path.SIGN_IN.value
        if state is RegistrationState.CONFIRMED:
            return see_other(sign_in)
        context = RegisteredElsewhereContext(
            login=pending.login, sign_in=sign_in, application=pending.flow.application, logo=pending.flow.logo
        )
        return self.forms.show(request, browser, context)

    def endpoints(self) -> list[Endpoint]:
        shown = page_endpoint(
            "GET",
            Path.REGISTER_CONTINUE,
            self.show_continue,
            name="register.continue",
            summary="Go on after the registration was confirmed",
        )
        return [
            shown,
            replace(
                shown,
                name="register.state",
                path=Path.REGISTER_STATE,
                handler=self.show_state,
                dialect=Dialect.PLAIN,
                rate_class=RateClass.PUBLIC,
                summary="Show whether the registration was confirmed",
            ),
            page_endpoint(
                "POST",
                Path.REGISTER_CODE,
                self.submit_code,
                name="register.code",
                summary="Finish a registration with a code",
            ),
        ]


def user_of(browser: Browser) -> str:
    return "" if browser.signed_in is None else browser.signed_in.user.user_id
