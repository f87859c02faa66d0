"""Someone who is signed in already: go on as that person, or as another (prompt=select_account)."""

from enum import StrEnum

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.interaction.errors import InteractionGone
from gatehouse.interaction.model import Step, proof_of_session
from gatehouse.web.browser import Browsers, FormExpired
from gatehouse.web.pages.contexts import AlreadySignedInContext
from gatehouse.web.pages.desk import Guarded, page_endpoint
from gatehouse.web.pages.entrance import Entrance, page_of
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.way import Way
from gatehouse.web.parse import read_form, read_query
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint


class Choice(StrEnum):
    CONTINUE = "continue"
    ANOTHER = "another"


class ChooseQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str = ""


class ChooseForm(Guarded, frozen=True, kw_only=True):
    interaction: str
    decision: Choice


class ChooseAccountPage:
    def __init__(self, *, entrance: Entrance, browsers: Browsers, way: Way) -> None:
        self._entrance = entrance
        self._browsers = browsers
        self._way = way

    async def show(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        handle = read_query(request, ChooseQuery).interaction
        try:
            destination = await self._way.destination(browser, handle)
        except InteractionGone:
            return self._way.expired(request, handle)
        if browser.signed_in is None:
            return see_other(page_of(Step.LOGIN, handle))
        user = browser.signed_in.user
        context = AlreadySignedInContext(
            csrf=self._browsers.csrf(browser),
            interaction=handle,
            nick=user.nick,
            login=user.login or "",
            application=destination.application,
            returns_to=destination.returns_to,
        )
        return self._way.show(request, browser, destination, context)

    async def choose(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        form = await read_form(request, ChooseForm)
        try:
            self._browsers.check_form(request, browser, form.csrf)
        except FormExpired:
            return self._way.stale(request, form.interaction)
        if form.decision is Choice.ANOTHER or browser.signed_in is None:
            return see_other(page_of(Step.LOGIN, form.interaction))
        try:
            proof = proof_of_session(browser.signed_in.session)
            return see_other(await self._entrance.onward(request, browser, proof, form.interaction))
        except InteractionGone:
            return self._way.expired(request, form.interaction)

    def endpoints(self) -> list[Endpoint]:
        return [
            page_endpoint(
                "GET", Path.SIGN_IN_AS, self.show, name="choose_account.show", summary="Show the account chooser"
            ),
            page_endpoint(
                "POST", Path.SIGN_IN_AS, self.choose, name="choose_account.choose", summary="Choose an account"
            ),
        ]
