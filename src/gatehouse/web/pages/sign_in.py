"""Sign-in with a password or a passkey, and sign-out."""

from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import SignInRefused
from gatehouse.accounts.failed_sign_ins.model import FailureReason
from gatehouse.accounts.model import SignInMethod
from gatehouse.accounts.second_factors.model import PasskeyRefused
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.session_model import PASSWORD_PROOF, passkey_proof
from gatehouse.accounts.sessions import Sessions
from gatehouse.accounts.sign_in import PasswordAttempt, PasswordSignIn
from gatehouse.accounts.store import AccountStore
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import TooMany
from gatehouse.providers.model import Provider
from gatehouse.providers.sign_in import SIGN_IN_WITH, ProviderSignIn
from gatehouse.sign_in_flow.model import SignInFlowGone
from gatehouse.web.http.browser import STAY_VALUE, Browser, BrowserSessions
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import read_form, read_query
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.contexts import ProviderButton, SignedOutContext, SignInContext
from gatehouse.web.pages.forms import FORBIDDEN
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in_flow import FlowForm, SignInCompletion, SignInFlowPages
from gatehouse.web.pages.vocabulary import Notice, PageProblem, ProblemKind

TOO_MANY_REQUESTS: Final = 429
# What may precede the sign-in; an address cannot make the page show anything else.
ARRIVAL_NOTICES: Final = {notice.value: notice for notice in (Notice.SIGN_IN_HERE,)}


class SignInQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""
    notice: str = ""


class SignInForm(FlowForm, frozen=True, kw_only=True):
    interaction: str = ""
    login: str
    password: SecretText
    stay: str = ""


class PasskeySignInForm(FlowForm, frozen=True, kw_only=True):
    interaction: str = ""
    credential: str


class SignOutForm(msgspec.Struct, frozen=True, kw_only=True):
    csrf: str = ""


def provider_buttons(providers: Sequence[Provider], handle: str) -> tuple[ProviderButton, ...]:
    query = f"?{urlencode({'interaction': handle})}" if handle else ""
    return tuple(
        ProviderButton(
            name=provider.name, mark=provider.preset.mark, path=f"{SIGN_IN_WITH}/{provider.provider_id}{query}"
        )
        for provider in providers
    )


class SignInPages(Struct, kw_only=True, eq=False):
    sign_in: PasswordSignIn
    accounts: AccountStore
    passkeys: Passkeys
    sessions: Sessions
    completion: SignInCompletion
    browsers: BrowserSessions
    pages: PageRenderer
    flow_pages: SignInFlowPages
    providers: ProviderSignIn
    register_enabled: Callable[[], bool]
    email_enabled: Callable[[], bool]
    usernames_enabled: Callable[[], bool]
    base_url: str

    async def show(self, request: Request) -> Response:
        browser = await self.browsers.read(request)
        query = read_query(request, SignInQuery)
        try:
            return await self.show_form(request, browser, query.interaction, notice=ARRIVAL_NOTICES.get(query.notice))
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, query.interaction)

    async def submit(self, request: Request) -> Response:
        return await self.flow_pages.handle_form(request, SignInForm, self._try_password)

    async def _try_password(self, request: Request, browser: Browser, form: SignInForm) -> Response:
        await self.flow_pages.destination(browser, form.interaction)  # an expired flow checks no password
        attempt = PasswordAttempt(
            password=form.password,
            source=caller_address_of(request.scope).source,
            device_cookie=browser.device,
        )
        try:
            user = await self.sign_in.verify(form.login, attempt)
        except SignInRefused:
            problem = PageProblem(what=ProblemKind.WRONG_LOGIN)
            return await self.show_form(request, browser, form.interaction, form.login, problem, status=FORBIDDEN)
        except TooMany as closed:
            problem = PageProblem(what=ProblemKind.THROTTLED, seconds=closed.retry_after)
            answer = await self.show_form(
                request, browser, form.interaction, form.login, problem, status=TOO_MANY_REQUESTS
            )
            answer.headers["Retry-After"] = str(closed.retry_after)
            return answer
        stays = form.stay == STAY_VALUE
        response = await self.completion.accept_first_factor(
            request, replace(browser, stays=stays), user, SignInMethod.LOGIN, form.interaction, proved=PASSWORD_PROOF
        )
        return response if stays == browser.stays else self.browsers.set_stay_cookie(response, stays=stays)

    async def submit_passkey(self, request: Request) -> Response:
        """Sign in with a passkey alone: it names its owner, who unlocked it, which is two factors in one."""
        return await self.flow_pages.handle_form(request, PasskeySignInForm, self._try_passkey)

    async def _try_passkey(self, request: Request, browser: Browser, form: PasskeySignInForm) -> Response:
        await self.flow_pages.destination(browser, form.interaction)
        refused: PasskeyRefused | None = None
        try:
            passkey = await self.passkeys.authenticate(
                form.credential, browser=sha256(browser.browser_id), origin=origin_of(request, "passkey")
            )
            user = await self.accounts.user(passkey.user_id)
        except PasskeyRefused as error:
            user, refused = None, error
        if user is None or user.blocked:
            if user is not None:
                address = origin_of(request, user.user_id).address
                self.completion.failures.count(user.user_id, FailureReason.BLOCKED, address)
            problem = PageProblem(what=ProblemKind.PASSKEY_FAILED)
            signals = self.passkeys.signal_after(refused)
            return await self.show_form(
                request, browser, form.interaction, problem=problem, status=FORBIDDEN, passkey_signals=signals
            )
        return await self.completion.open_session(
            request,
            browser,
            user,
            SignInMethod.PASSKEY,
            form.interaction,
            proved=[passkey_proof(passkey.passkey_id)],
        )

    async def sign_out(self, request: Request) -> Response:
        browser = await self.browsers.read(request)
        form = await read_form(request, SignOutForm)
        self.browsers.check_form(request, browser, form.csrf)
        if browser.signed_in is not None:
            origin = origin_of(request, browser.signed_in.user.user_id)
            await self.sessions.end(browser.signed_in, browser.signed_in.session.session_id, origin)
        return self.browsers.clear_session_cookie(self.pages.render(request, SignedOutContext()))

    async def show_form(
        self,
        request: Request,
        browser: Browser,
        interaction: str = "",
        login: str = "",
        problem: PageProblem | None = None,
        *,
        notice: Notice | None = None,
        status: int = 200,
        passkey_signals: str = "",
    ) -> Response:
        destination = await self.flow_pages.destination(browser, interaction)
        possible = self.passkeys.are_supported
        context = SignInContext(
            csrf=self.browsers.csrf_token(browser),
            interaction=interaction,
            login=login or destination.login_hint,
            problem=problem,
            notice=notice,
            stays=browser.stays,
            stay_cookie=self.browsers.stay_cookie,
            application=destination.application,
            returns_to=destination.returns_to,
            logo=destination.logo,
            links=destination.links,
            phone_link=f"{self.base_url}{destination.hand_over}" if destination.hand_over else "",
            guest=destination.guest,
            register_enabled=self.register_enabled(),
            email_enabled=self.email_enabled(),
            usernames_enabled=self.usernames_enabled(),
            providers=provider_buttons(self.providers.offered_by(destination.application_id), interaction),
            passkeys_enabled=possible,
            passkey_options=await self.passkeys.sign_in_options(browser=sha256(browser.browser_id))
            if possible
            else "",
            passkey_signals=passkey_signals,
        )
        return self.flow_pages.show(request, browser, destination, context, status=status)

    def endpoints(self) -> list[Endpoint]:
        shown = Endpoint(
            name="sign_in.show",
            path=Path.SIGN_IN,
            methods=("GET",),
            handler=self.show,
            dialect=Dialect.PAGE,
            rate_class=RateClass.LOGIN,
            section="pages",
            summary="Show the sign-in page",
            hidden=True,
        )
        posted = replace(shown, methods=("POST",))
        return [
            shown,
            replace(posted, name="sign_in.submit", handler=self.submit, summary="Sign in with a password"),
            replace(
                posted,
                name="sign_in.passkey",
                path=Path.SIGN_IN_PASSKEY,
                handler=self.submit_passkey,
                summary="Sign in with a passkey",
            ),
            replace(posted, name="sign_out", path=Path.SIGN_OUT, handler=self.sign_out, summary="Sign out"),
        ]
