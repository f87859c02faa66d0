"""The page of an invitation: the invited person chooses a name and a password."""

from collections.abc import Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.invitations import Invitations
from gatehouse.accounts.model import FlowReference, OpenLink, SignInMethod, User
from gatehouse.accounts.session_model import PASSWORD_PROOF
from gatehouse.accounts.store import AccountStore
from gatehouse.audit.model import AuditOrigin
from gatehouse.fields.secrets import SecretText
from gatehouse.web.http.browser import Browser, device_name
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.routing import Endpoint
from gatehouse.web.pages.contexts import InviteContext
from gatehouse.web.pages.forms import (
    BAD_REQUEST,
    CsrfForm,
    MailedLinkQuery,
    PublicForms,
    page_endpoint,
    problem_with,
    proving_browser_of,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.resuming import FlowResumption
from gatehouse.web.pages.sign_in_flow import SignInCompletion, SignInFlowPages
from gatehouse.web.pages.vocabulary import PageProblem


class InviteForm(CsrfForm, frozen=True, kw_only=True):
    token: str
    nick: str
    password: SecretText


class InvitePage(Struct, kw_only=True, eq=False):
    invitations: Invitations
    accept_access: Callable[[User, AuditOrigin], Awaitable[object]]  # of a role or group, if it came with one
    accounts: AccountStore
    completion: SignInCompletion
    find_application: Callable[[User], Awaitable[FlowReference]]  # of the role that it came with
    resumption: FlowResumption
    flow_pages: SignInFlowPages
    forms: PublicForms

    async def show(self, request: Request) -> Response:
        token = read_query(request, MailedLinkQuery).token
        link = await self.invitations.find_link(token)
        browser = await self.forms.read_browser(request)
        return await self._show_form(request, browser, token, link, link.owner.nick)

    async def _show_form(  # noqa: PLR0917 - the request and what its form says
        self,
        request: Request,
        browser: Browser,
        token: str,
        link: OpenLink,
        nick: str,
        problem: PageProblem | None = None,
        *,
        status: int | None = None,
    ) -> Response:
        flow = await self.find_application(link.owner)
        destination = await self.resumption.destination(browser, flow, here=False)
        context = InviteContext(
            csrf=self.forms.csrf_token(browser),
            token=token,
            login=link.owner.login or "",
            application=destination.application,
            logo=destination.logo,
            continues=bool(flow.start),
            nick=nick,
            ending=await self.invitations.find_ending(link, proving_browser_of(browser, link.owner)),
            problem=problem,
        )
        return self.flow_pages.show(request, browser, destination, context, status=status)

    async def submit(self, request: Request) -> Response:
        """Accept the invitation and sign this browser in with the password just chosen."""
        browser, form = await self.forms.read(request, InviteForm)
        link = await self.invitations.find_link(form.token)
        flow = await self.find_application(link.owner)  # before it is accepted
        try:
            accepted = await self._accept(request, browser, link.owner, form)
        except BadAccount as error:
            return await self._show_form(
                request, browser, form.token, link, form.nick, problem_with(error), status=BAD_REQUEST
            )
        handle = await self.resumption.start(browser, flow, here=False)
        return await self.completion.accept_first_factor(
            request, browser, accepted, SignInMethod.LOGIN, handle, proved=PASSWORD_PROOF
        )

    async def _accept(self, request: Request, browser: Browser, owner: User, form: InviteForm) -> User:
        asker = self.forms.link_requester(request)
        accepted = await self.invitations.accept(
            form.token,
            proving_browser_of(browser, owner),
            nick=form.nick,
            password=form.password,
            lang=asker.lang,
            origin=asker.origin,
            device=device_name(browser.agent),
        )
        await self.accept_access(accepted, replace(asker.origin, actor=accepted.user_id))
        return await self.accounts.user(accepted.user_id)

    def endpoints(self) -> list[Endpoint]:
        show, submit = self.forms.with_dead_link_page(self.show), self.forms.with_dead_link_page(self.submit)
        return [
            page_endpoint("GET", Path.INVITE, show, name="invite.show", summary="Show the invitation page"),
            page_endpoint("POST", Path.INVITE, submit, name="invite.submit", summary="Accept an invitation"),
        ]
