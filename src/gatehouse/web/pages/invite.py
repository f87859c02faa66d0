"""The page behind an invitation: the invited person chooses a name and a password."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.invitations import Invitations
from gatehouse.web.pages.contexts import InviteContext
from gatehouse.web.pages.desk import (
    BAD_REQUEST,
    CsrfForm,
    MailedLinkQuery,
    PublicForms,
    page_endpoint,
    problem_with,
    refuse_different_passwords,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice
from gatehouse.web.parse import read_query
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint


class InviteForm(CsrfForm, frozen=True, kw_only=True):
    token: str
    nick: str
    password: str
    repeated: str


class InvitePage:
    def __init__(self, *, invitations: Invitations, forms: PublicForms) -> None:
        self._invitations = invitations
        self._forms = forms

    async def show(self, request: Request) -> Response:
        token = read_query(request, MailedLinkQuery).token
        owner = await self._invitations.find_invited(token)
        browser = await self._forms.read_browser(request)
        context = InviteContext(
            csrf=self._forms.csrf_token(browser), token=token, login=owner.login or "", nick=owner.nick
        )
        return self._forms.show(request, browser, context)

    async def submit(self, request: Request) -> Response:
        """Whoever accepted signs in next, like everyone."""
        browser, form = await self._forms.read(request, InviteForm)
        owner = await self._invitations.find_invited(form.token)
        try:
            await self._accept(request, form)
        except BadAccount as error:
            context = InviteContext(
                csrf=self._forms.csrf_token(browser),
                token=form.token,
                login=owner.login or "",
                nick=form.nick,
                problem=problem_with(error),
            )
            return self._forms.show(request, browser, context, status=BAD_REQUEST)
        return see_other(f"{Path.SIGN_IN}?notice={Notice.WELCOME}")

    async def _accept(self, request: Request, form: InviteForm) -> None:
        refuse_different_passwords(form.password, form.repeated)
        asker = self._forms.link_requester(request)
        await self._invitations.accept(
            form.token, nick=form.nick, password=form.password, lang=asker.lang, origin=asker.origin
        )

    def endpoints(self) -> list[Endpoint]:
        show, submit = self._forms.with_dead_link_page(self.show), self._forms.with_dead_link_page(self.submit)
        return [
            page_endpoint("GET", Path.INVITE, show, name="invite.show", summary="Show the invitation page"),
            page_endpoint("POST", Path.INVITE, submit, name="invite.submit", summary="Accept an invitation"),
        ]
