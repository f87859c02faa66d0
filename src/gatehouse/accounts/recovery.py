"""Password recovery: a link by email, and a new password through that link.

The page that sets the password signs its browser in, after the second factor, which a reset does not replace (LG-15).
"""

from msgspec.structs import replace

from gatehouse.accounts.address_proofs.model import EndedMethods, ProvingBrowser
from gatehouse.accounts.email_links import EmailLinks, LinkRequester, as_owner
from gatehouse.accounts.errors import UserBlocked
from gatehouse.accounts.model import FlowReference, LinkKind, OpenLink, User, check_login
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.sign_in import PasswordSignIn
from gatehouse.accounts.store import AccountStore, EmailLinkStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate


class PasswordRecovery:
    def __init__(
        self,
        *,
        store: EmailLinkStore,
        links: EmailLinks,
        passwords: Passwords,
        rules: PasswordRules,
        sign_in: PasswordSignIn,
        composer: Composer,
        recorder: Recorder,
        clock: Clock,
        accounts: AccountStore,
    ) -> None:
        self._accounts = accounts
        self._store = store
        self._links = links
        self._passwords = passwords
        self._rules = rules
        self._sign_in = sign_in
        self._composer = composer
        self._recorder = recorder
        self._clock = clock

    async def request_link(self, login: str, requester: LinkRequester) -> None:
        """Send a link to the account's owner, whether the address is verified or not.

        A missing account, a blocked account and an exhausted quota look the same. Raises BadAccount for an invalid
        address.
        """
        checked = check_login(login)
        if not await self._links.may_email(checked, requester.source):
            return
        known = await self._store.user_by_login(checked)
        owner = None if known is None or known.blocked else known
        await self._links.send_or_simulate(LinkKind.RESET, owner, checked, requester)

    async def send_link(self, user: User, origin: AuditOrigin) -> None:
        """Send a link at an administrator's request. Raises UserBlocked, because the link would not work."""
        if user.blocked or user.login is None:
            raise UserBlocked(f"no link for {user.user_id}")
        await self._links.send(LinkKind.RESET, user, origin)

    async def show_link(self, user: User, origin: AuditOrigin) -> str:
        """Return the path of a link for an administrator to hand over, which proves no address (R9).

        Raises UserBlocked, because the link would not work.
        """
        if user.blocked or user.login is None:
            raise UserBlocked(f"no link for {user.user_id}")
        entry = self._recorder.record(AuditEvent.RESET_SHOWN, origin, subject=user.user_id)
        return await self._links.show(LinkKind.RESET, user, entry)

    async def find_link(self, secret: str) -> OpenLink:
        """Return the link and the account whose password it would replace. Raises LinkDead."""
        return await self._links.find(LinkKind.RESET, secret)

    def flow_of(self, link: OpenLink, browser: str) -> tuple[FlowReference, bool]:
        """Return the sign-in flow that the link was asked for in, and whether this browser asked."""
        return self._links.flow_of(link, browser)

    async def find_ending(self, link: OpenLink, browser: ProvingBrowser) -> EndedMethods:
        """Return what else ends when this browser uses the link (R10)."""
        return await self._links.find_ending_of(link, replace(browser, sets_password=True))

    async def reset_password(
        self,
        secret: str,
        password: str,
        browser: ProvingBrowser,
        *,
        origin: AuditOrigin,
        device: str,
        source: str,
        device_cookie: str = "",
    ) -> User:
        """Use the link: set the new password, end every session and token, and return the account as it is then.

        The first proof of the address also ends what the browser did not prove (R10). The owner is notified by
        email. Failed attempts at the old password, of the account and of this source and device cookie, are cleared.
        Raises LinkDead, and BadAccount for a password that breaks the rules.
        """
        owner = (await self.find_link(secret)).owner  # before the costly hash: a dead link costs nothing
        await self._rules.check(password, owner.login or "", owner.nick)
        hashed = await self._passwords.hash(password)
        mail = self._composer.compose(
            MailTemplate.PASSWORD_CHANGED,
            to=owner.login or "",
            lang=owner.lang,
            address=origin.address,
            device=device,
        )
        actor = as_owner(origin, owner)
        entry = self._recorder.record(AuditEvent.PASSWORD_RESET, actor, subject=owner.user_id)
        notices = self._links.proof_notices(owner, actor, device, [entry], [mail])
        proving = replace(browser, sets_password=True)
        await self._store.reset_password(sha256(secret), hashed, proving, notices, self._clock.now())
        await self._sign_in.clear_failures(owner, source=source, device_cookie=device_cookie)
        return await self._accounts.user(owner.user_id)
