"""Asks a person who is signed in to prove again that it is he, and leads back to what he was about to do."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.devices import Devices
from gatehouse.accounts.errors import SignInRefused
from gatehouse.accounts.own.confirmation import Confirmation
from gatehouse.accounts.own.errors import SessionEnded
from gatehouse.accounts.own.model import Claimant, Proof
from gatehouse.accounts.second_factors.email_code import EmailCodes
from gatehouse.accounts.second_factors.errors import PasskeyRefused, SecondFactorWrong
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.kernel.errors import TooMany
from gatehouse.web.browser import Browsers
from gatehouse.web.console.places import is_own_page
from gatehouse.web.pages.contexts import ConfirmContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.pages.notices import Notices
from gatehouse.web.pages.owner_desk import BACK_TO, OwnerDesk, Visit
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.vocabulary import Method, Notice, Problem, Trouble
from gatehouse.web.parse import read_query
from gatehouse.web.responses import see_other
from gatehouse.web.routes.table import Endpoint, RateClass

REFUSED: Final = 403
TOO_MANY: Final = 429

TROUBLES: Final = {
    SignInRefused: Trouble.WRONG_PASSWORD,
    SecondFactorWrong: Trouble.WRONG_CODE,
    PasskeyRefused: Trouble.PASSKEY_FAILED,
}


class ConfirmQuery(msgspec.Struct, frozen=True, kw_only=True):
    next: str = ""


class ConfirmForm(Guarded, frozen=True, kw_only=True):
    interaction: str = ""  # the address the act was at: what this page is on the way to
    password: str = ""
    otp: str = ""
    credential: str = ""
    method: Method | None = None  # `email`: send a code


class ConfirmPage:
    def __init__(
        self,
        *,
        confirmation: Confirmation,
        email_codes: EmailCodes,
        passkeys: Passkeys,
        devices: Devices,
        browsers: Browsers,
        desk: OwnerDesk,
        notices: Notices,
    ) -> None:
        self._confirmation = confirmation
        self._email_codes = email_codes
        self._passkeys = passkeys
        self._devices = devices
        self._browsers = browsers
        self._desk = desk
        self._notices = notices

    async def show(self, request: Request, visit: Visit) -> Response:
        goal = read_query(request, ConfirmQuery).next
        if self._desk.is_fresh(visit):
            return see_other(way_back(goal))
        return await self._form(request, visit, goal)

    async def submit(self, request: Request, visit: Visit, form: ConfirmForm) -> Response:
        try:
            if form.method is Method.EMAIL:
                return await self._send_code(visit, form.interaction)
            return await self._prove(visit, form)
        except (SignInRefused, SecondFactorWrong, PasskeyRefused) as error:
            problem = Problem(what=TROUBLES[type(error)])
            return await self._form(request, visit, form.interaction, problem, status=REFUSED)
        except TooMany as closed:
            problem = Problem(what=Trouble.THROTTLED, seconds=closed.retry_after)
            answer = await self._form(request, visit, form.interaction, problem, status=TOO_MANY)
            answer.headers["Retry-After"] = str(closed.retry_after)
            return answer
        except SessionEnded:
            return see_other(Path.SIGN_IN)

    async def _prove(self, visit: Visit, form: ConfirmForm) -> Response:
        secret = await self._confirmation.prove(
            visit.signed_in,
            Proof(password=form.password, otp=form.otp, credential=form.credential),
            claimant(visit),
        )
        device = self._devices.issue(visit.user.login_key or "")
        return self._browsers.signed_in(see_other(way_back(form.interaction)), secret, device)

    async def _send_code(self, visit: Visit, goal: str) -> Response:
        await self._email_codes.send(visit.user, origin=visit.origin, device=visit.device)
        again = self._desk.ask_again(goal if is_known(goal) else Path.ACCOUNT)
        return self._notices.leave(again, Notice.CODE_SENT)

    async def _form(
        self, request: Request, visit: Visit, goal: str, problem: Problem | None = None, *, status: int = 200
    ) -> Response:
        user, notice = visit.user, self._notices.read(request)
        ways = await self._confirmation.ways(user)
        if ways.are_none:
            return see_other(Path.FORGOT)  # a link by mail is the one proof that is left
        by_passkey = Factor.PASSKEY in ways.factors
        context = ConfirmContext(
            csrf=self._desk.csrf(visit),
            interaction=goal if is_known(goal) else "",
            login=user.login or "",
            has_password=ways.password and ways.can_be_typed,
            methods=tuple(Method(factor) for factor in ways.factors),
            passkey_options=await self._options(visit) if by_passkey else "",
            problem=problem,
            notice=notice,
        )
        page = self._desk.show(request, context, status=status)
        return page if notice is None else self._notices.forget(page)

    async def _options(self, visit: Visit) -> str:
        return await self._passkeys.sign_in_options(browser=visit.browser_digest, user=visit.user)

    def endpoints(self) -> list[Endpoint]:
        return [
            self._desk.shown(Path.CONFIRM, self.show, name="confirm.show", summary="Show the re-authentication page"),
            self._desk.posted(
                Path.CONFIRM,
                ConfirmForm,
                self.submit,
                name="confirm.submit",
                summary="Re-authenticate",
                rate_class=RateClass.LOGIN,
            ),
        ]


def is_known(goal: str) -> bool:
    return goal in BACK_TO or is_own_page(goal)


def way_back(goal: str) -> str:
    return goal if is_own_page(goal) else BACK_TO.get(goal, Path.ACCOUNT)


def claimant(visit: Visit) -> Claimant:
    return Claimant(
        source=visit.source,
        cookie=visit.browser.device,
        browser=visit.browser_digest,
        device=visit.device,
        origin=visit.origin,
    )
