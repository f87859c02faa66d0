"""Sign-in with a provider, and the providers connected to an account."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.bans.model import PersonBanned
from gatehouse.accounts.email_sign_in import EmailSignIn
from gatehouse.accounts.errors import (
    AddressHasAccount,
    ForeignDomainRefused,
    IdentityNotFound,
    IdentityTaken,
    LastSignInMethod,
    NoAccountForIdentity,
    NotSignedIn,
    TooManyIdentities,
    UserChanged,
)
from gatehouse.accounts.model import SignInMethod
from gatehouse.accounts.own_account.identities import IdentityAccounts
from gatehouse.accounts.second_factors.model import EmailNotVerified
from gatehouse.accounts.session_model import identity_proof
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import NotFound
from gatehouse.outbound.targets import web_origin_of
from gatehouse.providers.model import Provider, ProviderCanceled, ProviderProblem, ProviderRequestGone
from gatehouse.providers.sign_in import SIGN_IN_WITH, ProviderSignIn, TakenRequest, callback_path
from gatehouse.sign_in_flow.model import FlowStep, SignInFlowGone
from gatehouse.web.http.browser import Browser, BrowserSessions, is_prefetch
from gatehouse.web.http.context import origin_of
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.parse import query_pairs, raw_body
from gatehouse.web.http.parse_form import parse_urlencoded
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.pages.account import AccountPage
from gatehouse.web.pages.account_request import AccountRequest, AccountView
from gatehouse.web.pages.contexts import ProviderRedirectContext
from gatehouse.web.pages.forms import FORBIDDEN, CsrfForm
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.provider_test import ProviderTests
from gatehouse.web.pages.rendering import PageRenderer
from gatehouse.web.pages.sign_in import SignInPages
from gatehouse.web.pages.sign_in_flow import SignInCompletion, SignInFlowPages, banned_page, step_address
from gatehouse.web.pages.vocabulary import AccountSection, Notice, PageProblem, ProblemKind

CONFLICT: Final = 409
BAD_GATEWAY: Final = 502
FOREIGN_SITES: Final = frozenset({"cross-site", "same-site"})
MAX_ANSWER_BYTES: Final = 16_384
MAX_VALUE_LENGTH: Final = 4_096
# What a form of another site may bring along (Apple's response_mode=form_post).
POSTED_FIELDS: Final = ("state", "code", "error", "user")

PROBLEMS: Final[Mapping[type[Exception], tuple[ProblemKind, int]]] = {
    ProviderCanceled: (ProblemKind.PROVIDER_CANCELED, FORBIDDEN),
    NoAccountForIdentity: (ProblemKind.IDENTITY_UNKNOWN, FORBIDDEN),
    ForeignDomainRefused: (ProblemKind.IDENTITY_DOMAIN, FORBIDDEN),
    AddressHasAccount: (ProblemKind.ADDRESS_HAS_ACCOUNT, CONFLICT),
    IdentityTaken: (ProblemKind.IDENTITY_TAKEN, CONFLICT),
    TooManyIdentities: (ProblemKind.IDENTITIES_FULL, CONFLICT),
    EmailNotVerified: (ProblemKind.EMAIL_UNVERIFIED, CONFLICT),
}


def problem_of(error: Exception, provider: Provider) -> tuple[PageProblem, int]:
    """Return what the page says; a blocked account looks like a provider that failed."""
    kind, status = PROBLEMS.get(type(error), (ProblemKind.PROVIDER_FAILED, BAD_GATEWAY))
    return PageProblem(what=kind, text=provider.name), status


class ConnectForm(CsrfForm, frozen=True, kw_only=True):
    provider: str


class DisconnectForm(CsrfForm, frozen=True, kw_only=True):
    provider: str
    issuer: str
    subject: str
    end_sessions: str = ""  # "1" if the box is checked


class ProviderPages(Struct, kw_only=True, eq=False):
    providers: ProviderSignIn
    identities: IdentityAccounts
    email_sign_in: EmailSignIn
    sign_in: SignInPages
    completion: SignInCompletion
    browsers: BrowserSessions
    pages: PageRenderer
    flow_pages: SignInFlowPages
    account: AccountPage
    view: AccountView
    tests: ProviderTests

    async def start(self, request: Request) -> Response:
        """Send the browser to the provider. It is a link: a form could not leave for another site (form-action)."""
        provider = self._find(request)
        browser = await self.browsers.read(request)
        handle = request.query_params.get("interaction", "")
        if is_prefetch(request):
            return Response(status_code=CONFLICT)
        if request.headers.get("sec-fetch-site") in FOREIGN_SITES:
            # Another site must not sign a person in, or out of the present account: they press the button themselves.
            return see_other(step_address(FlowStep.LOGIN, handle) if handle else Path.SIGN_IN)
        try:
            destination = await self.flow_pages.destination(browser, handle)
            if not provider.is_offered_by(destination.application_id):
                raise NotFound("the application does not offer this provider")
            target = await self.providers.start(
                provider,
                browser=sha256(browser.browser_id),
                handle=handle,
                again=destination.asks_again or browser.signed_in is not None,
            )
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, handle)
        except ProviderProblem as error:
            return await self._show_failure(request, browser, provider, handle, error)
        return self.browsers.set_browser_cookie(see_other(target), browser)

    async def receive(self, request: Request) -> Response:
        """Take the answer that the browser brings from the provider."""
        provider = self.providers.find_configured(request.path_params["provider"])
        browser = await self.browsers.read(request)
        answer = answer_in(query_pairs(request))
        try:
            taken = await self.providers.take_request(
                provider, answer.get("state", ""), browser=sha256(browser.browser_id)
            )
        except ProviderRequestGone:
            return self.flow_pages.show_expired(request, "")
        if taken.tested_in:
            return await self.tests.show_result(request, browser, taken, answer)
        self._find(request)  # an answer of a provider that is turned off signs no one in
        if taken.link_to:
            return await self._link(request, browser, taken, answer)
        return await self._sign_in_with(request, browser, taken, answer)

    async def receive_posted(self, request: Request) -> Response:
        """Continue with the answer that another site's form posted, as if it had been in the address.

        Cookies do not come with such a request. It changes nothing here; the next one does, and brings them.
        """
        provider = self.providers.find_configured(request.path_params["provider"])
        if not provider.preset.posts_response:
            raise NotFound("the provider does not post its answers")
        answer = answer_in(parse_urlencoded(await raw_body(request)))
        fields: dict[str, str] = {name: answer[name] for name in POSTED_FIELDS if name in answer}
        return see_other(f"{callback_path(provider.provider_id)}?{urlencode(fields)}")

    async def _sign_in_with(
        self, request: Request, browser: Browser, taken: TakenRequest, answer: Mapping[str, str]
    ) -> Response:
        provider = taken.provider
        try:
            await self.flow_pages.destination(browser, taken.handle)  # an expired flow creates no account
            person = await self.providers.fetch_person(taken, answer)
            found = await self.identities.sign_in(
                person, provider.rules, lang=self.pages.language_of(request), origin=origin_of(request, "provider")
            )
            return await self.completion.accept_first_factor(
                request,
                browser,
                found.user,
                SignInMethod.PROVIDER,
                taken.handle,
                proved=identity_proof(person.issuer, person.subject),
            )
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, taken.handle)
        except PersonBanned as banned:
            return self.pages.render(request, banned_page(person.label, banned.ban))
        except (ProviderProblem, NotSignedIn) as error:
            return await self._show_failure(request, browser, provider, taken.handle, error)

    async def _show_failure(
        self, request: Request, browser: Browser, provider: Provider, handle: str, error: Exception
    ) -> Response:
        problem, status = problem_of(error, provider)
        try:
            return await self.sign_in.show_form(request, browser, handle, problem=problem, status=status)
        except SignInFlowGone:
            return self.flow_pages.show_expired(request, handle)

    # -- on the account page --------------------------------------------------------------------------

    async def connect(self, request: Request, account: AccountRequest, form: ConnectForm) -> Response:
        """Begin to connect an identity. The page that answers leads on: a form may not leave for another site."""
        provider = self.providers.find(form.provider)
        try:
            target = await self.providers.start(provider, browser=account.browser_digest, link_to=account.user)
        except ProviderProblem as error:
            problem, status = problem_of(error, provider)
            return await self.account.show_problem(
                request, account, AccountSection.IDENTITIES, problem, status=status
            )
        context = ProviderRedirectContext(
            target=target, host=web_origin_of(target.partition("?")[0]), provider=provider.name
        )
        response = self.view.show(request, context)
        response.headers["Refresh"] = f"0; url={target}"
        return response

    async def _link(
        self, request: Request, browser: Browser, taken: TakenRequest, answer: Mapping[str, str]
    ) -> Response:
        """Only the account that asked is linked, in the session that asked, while it is still signed in."""
        account = self.view.request_of(request, browser)
        if account is None or (account.user.user_id, account.user.rev) != (taken.link_to, taken.link_rev):
            return self.flow_pages.show_expired(request, "")
        try:
            person = await self.providers.fetch_person(taken, answer)
            await self.identities.link(
                person,
                taken.provider.rules,
                account.user,
                origin=account.origin,
                device=account.device,
            )
        except (ProviderProblem, NotSignedIn, IdentityTaken, TooManyIdentities, EmailNotVerified) as error:
            problem, status = problem_of(error, taken.provider)
            return await self.account.show_problem(
                request, account, AccountSection.IDENTITIES, problem, status=status
            )
        except UserChanged:
            return self.flow_pages.show_expired(request, "")
        return self.view.redirect_with_notice(Notice.IDENTITY_LINKED)

    async def disconnect(self, request: Request, account: AccountRequest, form: DisconnectForm) -> Response:
        provider = self.providers.all_providers().get(form.provider)
        try:
            await self.identities.unlink(
                account.user,
                form.issuer,
                form.subject,
                provider_name=provider.name if provider else form.provider,
                origin=account.origin,
                device=account.device,
                email_counts=await self.email_sign_in.is_available_to(account.user),
                keep=account.session.session_id if form.end_sessions else None,
            )
        except LastSignInMethod:
            problem = PageProblem(what=ProblemKind.LAST_SIGN_IN_METHOD)
            return await self.account.show_problem(
                request, account, AccountSection.IDENTITIES, problem, status=CONFLICT
            )
        except IdentityNotFound:
            problem = PageProblem(what=ProblemKind.CHANGED_MEANWHILE)
            return await self.account.show_problem(
                request, account, AccountSection.IDENTITIES, problem, status=CONFLICT
            )
        return self.view.redirect_with_notice(Notice.IDENTITY_UNLINKED)

    def _find(self, request: Request) -> Provider:
        return self.providers.find(request.path_params["provider"])

    def endpoints(self) -> list[Endpoint]:
        started = Endpoint(
            name="provider.start",
            path=f"{SIGN_IN_WITH}/{{provider}}",
            methods=("GET",),
            handler=self.start,
            dialect=Dialect.PAGE,
            rate_class=RateClass.LOGIN,
            section="pages",
            summary="Sign in with a provider",
            hidden=True,
        )
        received = replace(
            started,
            name="provider.receive",
            path=callback_path("{provider}"),
            handler=self.receive,
            summary="Receive a provider's answer",
        )
        return [
            started,
            received,
            replace(
                received,
                name="provider.receive_posted",
                methods=("POST",),
                handler=self.receive_posted,
                summary="Receive a provider's posted answer",
                body_limit=MAX_ANSWER_BYTES,
            ),
            self.view.form(
                Path.IDENTITY_CONNECT,
                ConnectForm,
                self.connect,
                name="account.identity_connect",
                summary="Connect a provider",
                fresh=True,
                rate_class=RateClass.LOGIN,
            ),
            self.view.form(
                Path.IDENTITY_REMOVE,
                DisconnectForm,
                self.disconnect,
                name="account.identity_remove",
                summary="Disconnect a provider",
                fresh=True,
            ),
        ]


def answer_in(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the fields of an answer, each once: one that comes twice could mean two things."""
    names = [name for name, _ in pairs]
    return {name: value for name, value in pairs if names.count(name) == 1 and len(value) <= MAX_VALUE_LENGTH}
