"""Pages of sign-in and registration by email: the code, and the link."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.address_proofs.model import ENDS_NOTHING, EndedMethods
from gatehouse.accounts.bans.model import PersonBanned
from gatehouse.accounts.email_sign_in import EMAIL_SIGN_IN_SECONDS, EmailSignIn, EmailSignInClient, EmailSignInResult
from gatehouse.accounts.errors import BadAccount, EmailCodeWrong, EmailSignInGone
from gatehouse.accounts.model import SignInMethod
from gatehouse.fields.secrets import SecretText
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.times import MINUTE
from gatehouse.sign_in_flow.account_sign_in import ACCOUNT_KIND, RETURN_TO
from gatehouse.sign_in_flow.flows import SignInFlows
from gatehouse.sign_in_flow.model import SignInFlowGone
from gatehouse.web.http.browser import Browser, BrowserSessions, device_name
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import (
    ANONYMOUS_ACTOR,
    BAD_REQUEST,
    FORBIDDEN,
    MailedLinkQuery,
    PublicForms,
    page_endpoint,
    problem_with,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in import SignInPages
from gatehouse.web.pages.sign_in_flow import FlowForm, SignInCompletion, SignInFlowPages, banned_page
from gatehouse.web.pages.vocabulary import PageProblem, ProblemKind


class EmailSignInContext(PageContext, frozen=True, kw_only=True):
    """The code of a sign-in by email; the same text with and without an account (LG-05)."""

    template = "email_sign_in.html"

    csrf: str
    interaction: str = ""
    login: str  # as typed
    registers: bool = False  # the code creates an account
    nick: str = ""  # as typed, with `registers`
    minutes: int = EMAIL_SIGN_IN_SECONDS // MINUTE  # lifetime of link and code
    problem: PageProblem | None = None


class EmailedLinkContext(PageContext, frozen=True, kw_only=True):
    """A link opened in the browser that asked for it."""

    template = "email_link.html"

    csrf: str
    token: str
    login: str
    creates: bool = False  # an account
    ending: EndedMethods = ENDS_NOTHING  # what ends with the first proof of the address (R10)
    code: str = ""  # a right one, instead of the token
    interaction: str = ""
    application: str = ""
    returns_to: str = ""


class LinkElsewhereContext(PageContext, frozen=True, kw_only=True):
    """A link opened in another browser, too late or twice; all look alike."""

    template = "email_link_elsewhere.html"
    status = FORBIDDEN


class EmailSignInForm(FlowForm, frozen=True, kw_only=True):
    interaction: str = ""
    login: str


class SignInCodeForm(EmailSignInForm, frozen=True, kw_only=True):
    otp: SecretText
    registers: str = ""
    nick: str = ""
    confirmed: str = ""  # the person saw what ends


class SignInLinkForm(FlowForm, frozen=True, kw_only=True):
    interaction: str = ""
    token: str


class EmailSignInPages(Struct, kw_only=True, eq=False):
    email_sign_in: EmailSignIn
    sign_in: SignInPages
    sign_in_flows: SignInFlows
    completion: SignInCompletion
    browsers: BrowserSessions
    pages: PageRenderer
    flow_pages: SignInFlowPages
    forms: PublicForms
    offers_passkeys: Callable[[], bool]

    async def send(self, request: Request) -> Response:
        """Send a link and a code; the response is the same for every address, also over the quota (LG-05, LG-16)."""
        return await self.flow_pages.handle_form(request, EmailSignInForm, self._send)

    async def _send(self, request: Request, browser: Browser, form: EmailSignInForm) -> Response:
        await self.flow_pages.destination(browser, form.interaction)  # an expired flow sends no email
        try:
            await self.email_sign_in.request(
                form.login,
                browser=sha256(browser.browser_id),
                handle=form.interaction,
                requester=replace(self.forms.link_requester(request), device_cookie=browser.device),
            )
        except BadAccount as error:
            return await self.sign_in.show_form(
                request, browser, form.interaction, form.login, problem_with(error), status=BAD_REQUEST
            )
        return await self.show_code_page(
            request, browser, EmailSignInContext(csrf="", interaction=form.interaction, login=form.login)
        )

    async def register(self, request: Request, browser: Browser, context: EmailSignInContext) -> Response:
        """Send a link and a code that create an account. Raises BadAccount and SignInFlowGone."""
        await self.flow_pages.destination(browser, context.interaction)
        await self.email_sign_in.request_registration(
            context.login,
            context.nick,
            browser=sha256(browser.browser_id),
            handle=context.interaction,
            requester=self.forms.link_requester(request),
        )
        return await self.show_code_page(request, browser, context)

    async def show_code_page(
        self, request: Request, browser: Browser, context: EmailSignInContext, *, status: int = 200
    ) -> Response:
        destination = await self.flow_pages.destination(browser, context.interaction)
        shown = replace(context, csrf=self.browsers.csrf_token(browser))
        return self.flow_pages.show(request, browser, destination, shown, status=status)

    def show_expired(self, request: Request, handle: str) -> Response:
        return self.flow_pages.show_expired(request, handle)

    async def submit_code(self, request: Request) -> Response:
        return await self.flow_pages.handle_form(request, SignInCodeForm, self._try_code)

    async def _try_code(self, request: Request, browser: Browser, form: SignInCodeForm) -> Response:
        await self.flow_pages.destination(browser, form.interaction)  # an expired flow uses no code
        try:
            accepted = await self.email_sign_in.accept_code(
                form.otp, client_of(request, browser), confirmed=bool(form.confirmed)
            )
        except (EmailCodeWrong, EmailSignInGone) as error:
            is_wrong = isinstance(error, EmailCodeWrong)
            context = EmailSignInContext(
                csrf="",
                interaction=form.interaction,
                login=form.login,
                registers=bool(form.registers),
                nick=form.nick,
                problem=PageProblem(what=ProblemKind.WRONG_CODE if is_wrong else ProblemKind.CODE_SPENT),
            )
            return await self.show_code_page(request, browser, context, status=FORBIDDEN)
        except PersonBanned as banned:
            return self.pages.render(request, banned_page(form.login, banned.ban))
        if isinstance(accepted, EndedMethods):
            return await self._show_ending(request, browser, form, accepted)
        return await self._complete(request, browser, accepted)

    async def _show_ending(
        self, request: Request, browser: Browser, form: SignInCodeForm, ending: EndedMethods
    ) -> Response:
        """Ask before a right code is used: it ends what this browser did not prove (R10)."""
        destination = await self.flow_pages.destination(browser, form.interaction)
        context = EmailedLinkContext(
            csrf=self.browsers.csrf_token(browser),
            token="",
            code=form.otp,
            interaction=form.interaction,
            login=form.login,
            ending=ending,
            application=destination.application,
            returns_to=destination.returns_to,
        )
        return self.flow_pages.show(request, browser, destination, context)

    async def show_link(self, request: Request) -> Response:
        """Ask before the link is used; another browser than the one that asked learns nothing."""
        token = read_query(request, MailedLinkQuery).token
        browser = await self.browsers.read(request)
        try:
            found = await self.email_sign_in.find_link(token, browser=sha256(browser.browser_id))
        except EmailSignInGone:
            return self.pages.render(request, LinkElsewhereContext())
        try:
            destination = await self.flow_pages.destination(browser, found.handle)
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, found.handle)
        context = EmailedLinkContext(
            csrf=self.browsers.csrf_token(browser),
            token=token,
            login=found.login,
            creates=found.creates,
            ending=await self.email_sign_in.find_ending(found.login, client_of(request, browser)),
            application=destination.application,
            returns_to=destination.returns_to,
        )
        return self.flow_pages.show(request, browser, destination, context)

    async def submit_link(self, request: Request) -> Response:
        return await self.flow_pages.handle_form(request, SignInLinkForm, self._use_link)

    async def _use_link(self, request: Request, browser: Browser, form: SignInLinkForm) -> Response:
        try:
            accepted = await self.email_sign_in.accept_link(form.token, client_of(request, browser))
        except EmailSignInGone:
            return self.pages.render(request, LinkElsewhereContext())
        except PersonBanned as banned:
            return self.pages.render(request, banned_page("", banned.ban))
        return await self._complete(request, browser, accepted)

    async def _complete(self, request: Request, browser: Browser, accepted: EmailSignInResult) -> Response:
        """Continue to the second factor or the session; a new account without a flow gets its first passkey."""
        handle = accepted.handle
        try:
            if accepted.created and not handle and self.offers_passkeys():
                handle = await self.sign_in_flows.start(
                    ACCOUNT_KIND, {RETURN_TO: Path.PASSKEY}, browser=browser.browser_id
                )
            return await self.completion.accept_first_factor(
                request, browser, accepted.user, SignInMethod.EMAIL, handle
            )
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, handle)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "POST",
                Path.SIGN_IN_EMAIL,
                self.send,
                name="email_sign_in.send",
                summary="Send a sign-in link and code",
            ),
            page_endpoint(
                "POST",
                Path.SIGN_IN_CODE,
                self.submit_code,
                name="email_sign_in.code",
                summary="Sign in with a code by email",
            ),
            page_endpoint(
                "GET",
                Path.SIGN_IN_LINK,
                self.show_link,
                name="email_sign_in.show_link",
                summary="Show the page of a sign-in link",
            ),
            page_endpoint(
                "POST",
                Path.SIGN_IN_LINK,
                self.submit_link,
                name="email_sign_in.link",
                summary="Sign in with a link by email",
            ),
        ]


def client_of(request: Request, browser: Browser) -> EmailSignInClient:
    return EmailSignInClient(
        browser=sha256(browser.browser_id),
        origin=origin_of(request, ANONYMOUS_ACTOR),
        device=device_name(browser.agent),
        signed_in=browser.signed_in,
    )
