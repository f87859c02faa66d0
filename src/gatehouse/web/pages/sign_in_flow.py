"""What the pages of a sign-in flow share: destination, last redirect, restart, and the new session."""

import base64
import binascii
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar
from urllib.parse import parse_qs, urlencode

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.accounts.bans.model import UserBan, find_ban
from gatehouse.accounts.failed_sign_ins.counter import FailedSignIns
from gatehouse.accounts.failed_sign_ins.model import FailureReason
from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.second_factors.model import enabled_factors
from gatehouse.accounts.session_model import UserSession
from gatehouse.accounts.sessions import Sessions
from gatehouse.accounts.sign_in import DeviceCookies, account_key
from gatehouse.audit.model import AuditOrigin
from gatehouse.fields.secrets import SecretRecord
from gatehouse.gamesessions.purpose import KIND as GAME
from gatehouse.kernel.clock import Clock
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail
from gatehouse.sign_in_flow.account_sign_in import ACCOUNT_KIND as ACCOUNT
from gatehouse.sign_in_flow.account_sign_in import RETURN_TO
from gatehouse.sign_in_flow.flows import SignInFlows, request_of_handle
from gatehouse.sign_in_flow.model import (
    Continuation,
    Destination,
    FlowStep,
    SignInFlow,
    SignInFlowGone,
    SignInProof,
    proof_of_flow,
    proof_of_session,
    sign_in_id_of,
)
from gatehouse.throttle.limits import ThrottleSubject
from gatehouse.throttle.quotas import Quota, quota_limit
from gatehouse.web.console.paths import is_console_page
from gatehouse.web.http.browser import Browser, BrowserSessions, FormExpired, device_name
from gatehouse.web.http.context import content_security_policy, origin_of
from gatehouse.web.http.parse import read_form
from gatehouse.web.http.responses import see_other
from gatehouse.web.pages.contexts import BannedContext, ExpiredContext, PageContext
from gatehouse.web.pages.continuation import continue_browser
from gatehouse.web.pages.paths import Path
from gatehouse.web.pages.rendering import UI_LOCALES, PageRenderer
from gatehouse.web.pages.vocabulary import Notice

MAX_PACKED_LENGTH: Final = 6_000  # characters; the whole address stays below the limit for request lines (S-19)
MAX_QUERY_LENGTH: Final = 8_192
STALE_FORM_STATUS: Final = 403  # like every other form that is not of this session
NO_DESTINATION: Final = Destination()


class FlowForm(SecretRecord, frozen=True, kw_only=True):
    interaction: str
    csrf: str = ""


F = TypeVar("F", bound=FlowForm)
FormHandler = Callable[[Request, Browser, F], Awaitable[Response]]


class SignInFlowPages(Struct, kw_only=True, eq=False):
    sign_in_flows: SignInFlows
    browsers: BrowserSessions
    pages: PageRenderer

    async def destination(self, browser: Browser, handle: str) -> Destination:
        """Return the destination of this browser's flow; empty without a flow. Raises SignInFlowGone."""
        if not handle:
            return NO_DESTINATION
        flow = await self.sign_in_flows.find(handle, browser=browser.browser_id)
        return await self.sign_in_flows.destination(flow)

    def show(
        self,
        request: Request,
        browser: Browser,
        destination: Destination,
        context: PageContext,
        *,
        status: int | None = None,
        account_lang: str = "",
    ) -> Response:
        """Render the page; its policy allows the final redirect: browsers apply form-action to redirects too."""
        leads_to = destination.form_action
        policy = {"Content-Security-Policy": content_security_policy(form_action=[leads_to])} if leads_to else {}
        page = self.pages.render(
            request,
            context,
            status=status,
            account_lang=account_lang,
            ui_locales=destination.ui_locales,
            headers=policy,
        )
        return self.browsers.set_browser_cookie(page, browser)

    async def handle_form(self, request: Request, kind: type[F], handle: FormHandler[F]) -> Response:
        """Read and check a form of the flow and handle it, or show that the form or the flow has expired."""
        browser = await self.browsers.read(request)
        form = await read_form(request, kind)
        try:
            self.browsers.check_form(request, browser, form.csrf)
            return await handle(request, browser, form)
        except FormExpired:
            return stale_form_page(self.pages, request, form.interaction)
        except SignInFlowGone:
            return self.show_expired(request, form.interaction)

    def leave(self, request: Request, target: Continuation) -> Response:
        """Send the browser where the flow ends."""
        return continue_browser(self.pages, request, target)

    def show_expired(self, request: Request, handle: str) -> Response:
        """Show that the flow has expired, with a link that starts the same request again."""
        again = restart_address(handle)
        return self.pages.render(request, ExpiredContext(start_again=again), ui_locales=ui_locales_in(again))


def session_of_flow(browser: Browser, flow: SignInFlow) -> UserSession:
    """Return the browser's session if it is the one the flow was authenticated with. Raises SignInFlowGone."""
    signed_in = browser.signed_in
    if signed_in is None or proof_of_flow(flow).sign_in_id != sign_in_id_of(signed_in.session):
        raise SignInFlowGone
    return signed_in


def stale_form_page(pages: PageRenderer, request: Request, handle: str, *, fallback: str = Path.SIGN_IN) -> Response:
    """Show that the form is from before a sign-in or sign-out, with a link that starts its request again."""
    again = restart_address(handle, fallback=fallback)
    context = ExpiredContext(start_again=again, is_stale=True)
    return pages.render(request, context, status=STALE_FORM_STATUS, ui_locales=ui_locales_in(again))


def pack_request(query: bytes) -> str:
    """Return an authorization query, or the address of a game's, a site's or a console page, as a handle carries it.

    Empty when it is too long for that.
    """
    packed = base64.urlsafe_b64encode(zlib.compress(query, 9)).decode().rstrip("=")
    return packed if len(packed) <= MAX_PACKED_LENGTH else ""


def restart_address(handle: str, *, fallback: str = Path.SIGN_IN) -> str:
    """Return an address of this service, whatever the untrusted handle contains."""
    query = _unpack_request(request_of_handle(handle))
    if query.startswith((f"{Path.HOME}?", f"{Path.SITE_SIGN_IN}?")) or is_console_page(query):
        return query
    return f"{Path.AUTHORIZE}?{query}" if query else fallback


def ui_locales_in(address: str) -> str:
    """Return the languages the client requested in the request that starts again there."""
    return parse_qs(address.partition("?")[2]).get(UI_LOCALES, [""])[0]


def _unpack_request(packed: str) -> str:
    try:
        squeezed = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        query = zlib.decompressobj().decompress(squeezed, MAX_QUERY_LENGTH).decode("ascii")
    except (binascii.Error, zlib.error, ValueError):
        return ""
    return query if query.isprintable() else ""


# From authentication to a session, shared by every kind of sign-in.


DenyBannedGame = Callable[[SignInFlow, str, AuditOrigin], Awaitable[None]]
NEW_ACCOUNT_SECONDS: Final = 600  # seconds after registration without new-device emails
NEW_DEVICE_LIMIT: Final = quota_limit(5, 86_400)  # emails a day to one person
STEP_PATHS: Final = {
    FlowStep.LOGIN: Path.SIGN_IN,
    FlowStep.FACTOR: Path.SECOND_FACTOR,
    FlowStep.TERMS: Path.TERMS,
    FlowStep.CONSENT: Path.CONSENT,
    FlowStep.CONFIRM: Path.CONFIRM_SIGN_IN,
}


class SignInCompletion(Struct, kw_only=True, eq=False):
    """`deny_banned_game` ends the game session of a flow for a banned person.

    `notices_enabled`: whether people get an email about a new device. Administrators land in the console.
    """

    sessions: Sessions
    devices: DeviceCookies
    sign_in_flows: SignInFlows
    browsers: BrowserSessions
    deny_banned_game: DenyBannedGame
    composer: Composer
    pages: PageRenderer
    clock: Clock
    failures: FailedSignIns
    notice_quota: Quota
    notices_enabled: Callable[[], bool]
    is_administrator: Callable[[User], Awaitable[bool]]

    async def accept_first_factor(
        self, request: Request, browser: Browser, user: User, auth: SignInMethod, handle: str, *, proved: str = ""
    ) -> Response:
        """Continue to the second factor if the account has one, else to a session."""
        if not enabled_factors(user):
            return await self.open_session(request, browser, user, auth, handle, proved=(proved,) if proved else ())
        if handle:
            await self.sign_in_flows.accept_first_factor(
                await self.sign_in_flows.find(handle, browser=browser.browser_id), user, auth, proved
            )
        else:
            ask = {RETURN_TO: Path.CONSOLE.value} if await self.is_administrator(user) else {}
            handle = await self.sign_in_flows.start(
                ACCOUNT, ask, browser=browser.browser_id, user=user, method=auth, proved=proved
            )
        return see_other(step_address(FlowStep.FACTOR, handle))

    async def open_session(
        self,
        request: Request,
        browser: Browser,
        user: User,
        auth: SignInMethod,
        handle: str,
        *,
        second_factor: str = "",
        proved: Sequence[str] = (),
    ) -> Response:
        """Open a new session, never one the browser brought along (LG-01), and continue.

        A person who is banned from the installation is told so here, after they have authenticated (R10).
        """
        ban = find_ban(user.bans, self.clock.now())
        if ban is not None:
            self.failures.count(user.user_id, FailureReason.BANNED, origin_of(request, user.user_id).address)
            return await self._show_ban(request, browser, user, ban, handle)
        opened = await self.sessions.open(
            user,
            auth,
            origin=origin_of(request, user.user_id),
            agent=browser.agent,
            replaces=browser.session,
            mails=await self._new_device_mails(request, browser, user),
            second_factor=second_factor,
            stays=browser.stays,
            proved=proved,
        )
        proof = proof_of_session(opened.session, is_new=True)
        lands = not handle and await self.is_administrator(user)
        response = see_other(Path.CONSOLE) if lands else await self.continue_flow(request, browser, proof, handle)
        device = self.devices.issue(user, browser.device)
        return self.browsers.set_session_cookie(response, opened.secret, device, stays=browser.stays)

    async def _show_ban(self, request: Request, browser: Browser, user: User, ban: UserBan, handle: str) -> Response:
        if handle:
            flow = await self.sign_in_flows.find(handle, browser=browser.browser_id)
            await self.sign_in_flows.discard(flow)
            if flow.kind == GAME:
                await self.deny_banned_game(flow, user.user_id, origin_of(request, user.user_id))
        return self.pages.render(request, banned_page(user.login or user.nick, ban), account_lang=user.lang)

    async def continue_flow(self, request: Request, browser: Browser, proof: SignInProof, handle: str) -> Response:
        """Send the person on after authentication: on with the flow, or to the account."""
        if not handle:
            return see_other(Path.ACCOUNT)
        flow = await self.sign_in_flows.find(handle, browser=browser.browser_id)
        address = origin_of(request, proof.user_id).address
        moved = await self.sign_in_flows.accept_proof(flow, proof, address=address)
        return await self.go_on(request, moved, handle)

    async def go_on(self, request: Request, moved: SignInFlow, handle: str) -> Response:
        """Send the browser to the next step of the flow, or where the flow ends."""
        return await continue_flow(self.sign_in_flows, self.pages, request, moved, handle)

    async def _new_device_mails(self, request: Request, browser: Browser, user: User) -> Sequence[OutboxMail]:
        """Notify the owner of a sign-in from a browser that is new for the account, a few times a day (S-16)."""
        if not self.notices_enabled() or user.login is None:
            return ()
        if self.clock.now() < user.reg_time + NEW_ACCOUNT_SECONDS:
            return ()
        if self.devices.recognize(browser.device, account_key(user)):
            return ()
        if not await self.notice_quota.consume([ThrottleSubject(("new-device", user.user_id), NEW_DEVICE_LIMIT)]):
            return ()
        address = origin_of(request, user.user_id).address
        return [
            self.composer.compose(
                MailTemplate.NEW_DEVICE,
                to=user.login,
                lang=user.lang,
                address=address,
                device=device_name(browser.agent),
            )
        ]


async def continue_flow(
    flows: SignInFlows, pages: PageRenderer, request: Request, flow: SignInFlow, handle: str
) -> Response:
    """Send the browser to the next step of the flow, or where the flow ends."""
    if flow.step is FlowStep.DONE:
        return continue_browser(pages, request, await flows.finish(flow, origin_of(request, flow.user_id or "")))
    address = step_address(flow.step, handle)
    if flow.kind == GAME and flow.step is FlowStep.LOGIN and flow.auth == SignInMethod.PROVIDER:
        address = f"{address}&{urlencode({'notice': Notice.SIGN_IN_HERE.value})}"
    return see_other(address)


def banned_page(login: str, ban: UserBan, application: str = "") -> BannedContext:
    return BannedContext(login=login, application=application, public_text=ban.public_text, until=ban.until)


def step_address(step: FlowStep, handle: str) -> str:
    return f"{STEP_PATHS[step]}?{urlencode({'interaction': handle})}"
