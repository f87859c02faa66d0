"""From a proof to a session: what every way in shares."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.devices import DeviceCookies
from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.second_factors.model import enabled_factors
from gatehouse.accounts.sessions import Sessions
from gatehouse.interaction.account import ACCOUNT_KIND as ACCOUNT
from gatehouse.interaction.dispatcher import SignInFlows
from gatehouse.interaction.model import FlowStep, SignInProof, proof_of_session
from gatehouse.kernel.clock import Clock
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail
from gatehouse.web.agents import device_name
from gatehouse.web.browser import Browser, BrowserSessions
from gatehouse.web.origin import origin_of
from gatehouse.web.pages.paths import Path
from gatehouse.web.responses import see_other

NEW_ACCOUNT_SECONDS: Final = 600  # seconds after registration in which a new device is no news
STEP_PATHS: Final = {
    FlowStep.LOGIN: Path.SIGN_IN,
    FlowStep.FACTOR: Path.SECOND_FACTOR,
    FlowStep.CONSENT: Path.CONSENT,
    FlowStep.CONFIRM: Path.CONFIRM_SIGN_IN,
}


class SignInCompletion:
    def __init__(
        self,
        *,
        sessions: Sessions,
        devices: DeviceCookies,
        sign_in_flows: SignInFlows,
        browsers: BrowserSessions,
        composer: Composer,
        clock: Clock,
    ) -> None:
        self._sessions = sessions
        self._devices = devices
        self._sign_in_flows = sign_in_flows
        self._browsers = browsers
        self._composer = composer
        self._clock = clock

    async def accept_password(self, request: Request, browser: Browser, user: User, handle: str) -> Response:
        """The password was right: on to the second factor if the account has one, else in."""
        if not enabled_factors(user):
            return await self.open_session(request, browser, user, SignInMethod.LOGIN, handle)
        if handle:
            await self._sign_in_flows.accept_first_factor(
                await self._sign_in_flows.find(handle, browser=browser.browser_id), user
            )
        else:
            handle = await self._sign_in_flows.start(ACCOUNT, {}, browser=browser.browser_id, user=user)
        return see_other(step_address(FlowStep.FACTOR, handle))

    async def open_session(
        self, request: Request, browser: Browser, user: User, auth: SignInMethod, handle: str
    ) -> Response:
        """Everything was proved: a new session, never one the browser brought along (LG-01), and onward."""
        opened = await self._sessions.open(
            user,
            auth,
            origin=origin_of(request, user.user_id),
            agent=browser.agent,
            replaces=browser.session,
            mails=self._new_device_mails(request, browser, user),
        )
        proof = proof_of_session(opened.session, is_new=True)
        response = see_other(await self.next_address(request, browser, proof, handle))
        return self._browsers.set_session_cookie(response, opened.secret, self._devices.issue(user.login_key or ""))

    async def next_address(self, request: Request, browser: Browser, proof: SignInProof, handle: str) -> str:
        """Where somebody goes who has proved that: on along his way, or to his account."""
        if not handle:
            return Path.ACCOUNT
        interaction = await self._sign_in_flows.find(handle, browser=browser.browser_id)
        moved = await self._sign_in_flows.accept_proof(interaction, proof)
        if moved.step is FlowStep.DONE:
            return await self._sign_in_flows.finish(moved, origin_of(request, proof.user_id))
        return step_address(moved.step, handle)

    def _new_device_mails(self, request: Request, browser: Browser, user: User) -> Sequence[OutboxMail]:
        """Tell the owner when his account was entered from a browser never seen there before (S-16)."""
        if user.login is None or self._clock.now() < user.reg_time + NEW_ACCOUNT_SECONDS:
            return ()
        if self._devices.recognize(browser.device, user.login_key or ""):
            return ()
        address = origin_of(request, user.user_id).address
        return [
            self._composer.compose(
                MailTemplate.NEW_DEVICE,
                to=user.login,
                lang=user.lang,
                address=address,
                device=device_name(browser.agent),
            )
        ]


def step_address(step: FlowStep, handle: str) -> str:
    return f"{STEP_PATHS[step]}?{urlencode({'interaction': handle})}"
