"""The page behind an invitation: the invited person chooses a name and a password."""

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.invitations import Invitations
from gatehouse.web.pages.contexts import InviteContext
from gatehouse.web.pages.desk import (
    NOT_YET,
    Desk,
    Guarded,
    MailedLink,
    page_endpoint,
    refuse_if_different,
    trouble_with,
)
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Notice
from gatehouse.web.parse import read_query
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint


class InviteForm(Guarded, frozen=True, kw_only=True):
    token: str
    nick: str
    password: str
    repeated: str


class InvitePage:
    def __init__(self, *, invitations: Invitations, desk: Desk) -> None:
        self._invitations = invitations
        self._desk = desk

    async def show(self, request: Request) -> Response:
        token = read_query(request, MailedLink).token
        owner = await self._invitations.invited(token)
        browser = await self._desk.visitor(request)
        context = InviteContext(csrf=self._desk.csrf(browser), token=token, login=owner.login or "", nick=owner.nick)
        return self._desk.hand_out(request, browser, context)

    async def submit(self, request: Request) -> Response:
        """Whoever accepted signs in next, like everyone."""
        browser, form = await self._desk.take_back(request, InviteForm)
        owner = await self._invitations.invited(form.token)
        try:
            await self._accept(request, form)
        except BadAccount as error:
            context = InviteContext(
                csrf=self._desk.csrf(browser),
                token=form.token,
                login=owner.login or "",
                nick=form.nick,
                problem=trouble_with(error),
            )
            return self._desk.hand_out(request, browser, context, status=NOT_YET)
        return see_other(f"{Path.SIGN_IN}?notice={Notice.WELCOME}")

    async def _accept(self, request: Request, form: InviteForm) -> None:
        refuse_if_different(form.password, form.repeated)
        asker = self._desk.asker(request)
        await self._invitations.accept(
            form.token, nick=form.nick, password=form.password, lang=asker.lang, origin=asker.origin
        )

    def endpoints(self) -> list[Endpoint]:
        show, submit = self._desk.for_links(self.show), self._desk.for_links(self.submit)
        return [
            page_endpoint("GET", Path.INVITE, show, name="invite.show", summary="Show the invitation page"),
            page_endpoint("POST", Path.INVITE, submit, name="invite.submit", summary="Accept an invitation"),
        ]
