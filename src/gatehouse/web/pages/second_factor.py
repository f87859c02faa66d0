"""The second step of a sign-in."""

from dataclasses import dataclass, replace
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.model import Auth, User
from gatehouse.accounts.second_factors.email_code import EmailCodes
from gatehouse.accounts.second_factors.errors import PasskeyRefused, SecondFactorWrong
from gatehouse.accounts.second_factors.model import Factor, Factors
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.store import AccountStore
from gatehouse.interaction.dispatcher import Interactions
from gatehouse.interaction.errors import InteractionGone
from gatehouse.interaction.model import Interaction, Step, first_step_holds
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.errors import TooMany
from gatehouse.web.agents import device_of
from gatehouse.web.browser import Browser, Browsers, FormExpired
from gatehouse.web.dialects import Dialect
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.contexts import SecondFactorContext
from gatehouse.web.pages.entrance import Entrance, page_of
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Method, Notice, Problem, Trouble
from gatehouse.web.pages.way import Way
from gatehouse.web.parse import read_form, read_query
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint, RateClass

REFUSED: Final = 403
TOO_MANY: Final = 429
SENT_MARK: Final = "&sent=1"


class FactorQuery(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str
    method: Method | None = None
    sent: str = ""


class FactorForm(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str
    csrf: str = ""
    method: Method | None = None
    otp: str = ""
    credential: str = ""


class MethodForm(msgspec.Struct, frozen=True, kw_only=True):
    interaction: str
    csrf: str = ""
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Who stands at the second step, and where."""

    browser: Browser
    handle: str
    interaction: Interaction
    user: User
    factors: Factors


class SecondFactorPages:
    def __init__(
        self,
        *,
        accounts: AccountStore,
        factors: SecondFactors,
        email_codes: EmailCodes,
        passkeys: Passkeys,
        interactions: Interactions,
        entrance: Entrance,
        browsers: Browsers,
        way: Way,
        mail_is_logged: bool,
    ) -> None:
        self._accounts = accounts
        self._factors = factors
        self._email_codes = email_codes
        self._passkeys = passkeys
        self._interactions = interactions
        self._entrance = entrance
        self._browsers = browsers
        self._way = way
        self._mail_is_logged = mail_is_logged

    async def show(self, request: Request) -> Response:
        query = read_query(request, FactorQuery)
        try:
            stage = await self._stage(await self._browsers.read(request), query.interaction)
        except InteractionGone:
            return self._way.expired(request, query.interaction)
        notice = Notice.CODE_SENT if query.sent else None
        return await self._form(request, stage, query.method, notice=notice)

    async def submit(self, request: Request) -> Response:
        browser = await self._browsers.read(request)
        form = await read_form(request, FactorForm)
        try:
            self._browsers.check_form(request, browser, form.csrf)
            stage = await self._stage(browser, form.interaction)
            return await self._try(request, stage, form)
        except FormExpired:
            return self._way.stale(request, form.interaction)
        except InteractionGone:
            return self._way.expired(request, form.interaction)

    async def choose(self, request: Request) -> Response:
        """Another method was asked for; choosing e-mail sends a code."""
        browser = await self._browsers.read(request)
        form = await read_form(request, MethodForm)
        try:
            self._browsers.check_form(request, browser, form.csrf)
            stage = await self._stage(browser, form.interaction)
        except FormExpired:
            return self._way.stale(request, form.interaction)
        except InteractionGone:
            return self._way.expired(request, form.interaction)
        address = f"{page_of(Step.FACTOR, stage.handle)}&method={form.method}"
        if form.method is not Method.EMAIL:
            return see_other(address)
        try:
            await self._send_code(request, stage)
        except TooMany as closed:
            problem = Problem(what=Trouble.THROTTLED, seconds=closed.retry_after)
            return await self._form(request, stage, form.method, problem=problem, status=TOO_MANY)
        return see_other(address + SENT_MARK)

    async def _try(self, request: Request, stage: Stage, form: FactorForm) -> Response:
        try:
            await self._prove(request, stage, form)
        except (SecondFactorWrong, PasskeyRefused):
            stage = replace(stage, interaction=await self._interactions.failed(stage.interaction))
            problem = Problem(what=Trouble.PASSKEY_FAILED if form.credential else Trouble.WRONG_CODE)
            return await self._form(request, stage, form.method, problem=problem, status=REFUSED)
        except TooMany as closed:
            problem = Problem(what=Trouble.THROTTLED, seconds=closed.retry_after)
            return await self._form(request, stage, form.method, problem=problem, status=TOO_MANY)
        return await self._entrance.admit(request, stage.browser, stage.user, Auth.TWO_STEP, stage.handle)

    async def _prove(self, request: Request, stage: Stage, form: FactorForm) -> None:
        origin = origin_of(request, stage.user.user_id)
        if form.credential:
            browser = sha256(stage.browser.name)
            await self._passkeys.sign_in(form.credential, browser=browser, origin=origin, user=stage.user)
            return
        method = None if form.method in (None, Method.PASSKEY) else Factor(form.method)
        await self._factors.verify(
            stage.user, form.otp.strip(), method, origin=origin, device=device_of(stage.browser.agent)
        )

    async def _send_code(self, request: Request, stage: Stage) -> None:
        origin = origin_of(request, stage.user.user_id)
        await self._email_codes.send(stage.user, origin=origin, device=device_of(stage.browser.agent))

    async def _stage(self, browser: Browser, handle: str) -> Stage:
        interaction = await self._interactions.find(handle, browser=browser.name)
        if interaction.user_id is None or interaction.step is not Step.FACTOR:
            raise InteractionGone
        user = await self._accounts.user(interaction.user_id)
        factors = await self._factors.of(user)
        if user.blocked or not first_step_holds(interaction, user) or not factors.offered:
            raise InteractionGone
        return Stage(browser=browser, handle=handle, interaction=interaction, user=user, factors=factors)

    async def _form(
        self,
        request: Request,
        stage: Stage,
        chosen: Method | None,
        *,
        problem: Problem | None = None,
        notice: Notice | None = None,
        status: int = 200,
    ) -> Response:
        destination = await self._interactions.destination(stage.interaction)
        offered = tuple(Method(factor) for factor in stage.factors.offered)
        method = chosen if chosen in offered else offered[0]
        context = SecondFactorContext(
            csrf=self._browsers.csrf(stage.browser),
            interaction=stage.handle,
            method=method,
            others=tuple(other for other in offered if other is not method),
            application=destination.application,
            sent_to=hidden(stage.user.login or "") if method is Method.EMAIL else "",
            passkey_options=await self._options(stage) if method is Method.PASSKEY else "",
            problem=problem,
            notice=notice,
            mail_is_logged=self._mail_is_logged,
        )
        return self._way.show(
            request, stage.browser, destination, context, status=status, account_lang=stage.user.lang
        )

    async def _options(self, stage: Stage) -> str:
        return await self._passkeys.sign_in_options(browser=sha256(stage.browser.name), user=stage.user)

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
                handler=self.choose,
                summary="Choose another second factor",
            ),
        ]


def hidden(login: str) -> str:
    """Enough of an address to know it by, and not more: a…@studio.example."""
    local, _, domain = login.rpartition("@")
    return f"{local[:1]}…@{domain}"
