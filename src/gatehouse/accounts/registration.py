"""Self-registration.

The response never reveals whether an address has an account; its owner is notified by email instead.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.address_proofs.model import ProvingBrowser
from gatehouse.accounts.email_links import EmailLinks, LinkRequester, as_owner
from gatehouse.accounts.errors import DomainRefused, LoginTaken, RegistrationClosed, UserIdTaken
from gatehouse.accounts.field_checks import check_nick
from gatehouse.accounts.importing.hashes import is_imported
from gatehouse.accounts.model import (
    JOINED_KEY,
    SELF_REGISTERED,
    LinkKind,
    User,
    check_login,
    check_new_login,
    login_key,
)
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.pending_registrations import PendingRegistrations
from gatehouse.accounts.store import EmailLinkStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_user_id
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate


class RegistrationPolicy(Struct, frozen=True, kw_only=True):
    is_open: bool
    domains: tuple[str, ...] = ()  # the only allowed ones; empty allows any


class NewAccount(SecretRecord, frozen=True, kw_only=True):
    login: str
    nick: str
    password: SecretText


class SelfRegistration:
    def __init__(
        self,
        *,
        store: EmailLinkStore,
        links: EmailLinks,
        passwords: Passwords,
        rules: PasswordRules,
        composer: Composer,
        recorder: Recorder,
        clock: Clock,
        pending: PendingRegistrations,
        policy: Callable[[], RegistrationPolicy],
    ) -> None:
        self._store = store
        self._links = links
        self._passwords = passwords
        self._rules = rules
        self._composer = composer
        self._recorder = recorder
        self._clock = clock
        self._pending = pending
        self._policy = policy

    @property
    def domains(self) -> tuple[str, ...]:
        return self._policy().domains

    def refuse_when_closed(self) -> None:
        if not self._policy().is_open:
            raise RegistrationClosed

    async def register(self, account: NewAccount, requester: LinkRequester) -> None:
        """Create the account and send a verification link, or notify the owner of an existing account.

        The response is the same for both. Raises BadAccount for invalid input.
        """
        self.refuse_when_closed()
        login, nick = check_new_login(account.login), check_nick(account.nick)
        refuse_foreign_domain(login, self.domains)
        await self._rules.check(account.password, login, nick)
        if await self._links.may_email(login, requester.source):
            await self._create_or_notify(NewAccount(login=login, nick=nick, password=account.password), requester)

    async def resend_verification(self, login: str, requester: LinkRequester) -> None:
        """Send a new verification link to an account that awaits one; other addresses look the same."""
        checked = check_login(login)
        if not await self._links.may_email(checked, requester.source):
            return
        known = await self._store.user_by_login(checked)
        waits = known is not None and awaits_verification(known)
        await self._links.send_or_simulate(LinkKind.VERIFY, known if waits else None, checked, requester)

    async def find_unverified(self, secret: str) -> User:
        """Return the account whose address the link would verify. Raises LinkDead."""
        return (await self._links.find(LinkKind.VERIFY, secret)).owner

    async def verify_email(
        self,
        secret: str,
        browser: ProvingBrowser,
        *,
        origin: AuditOrigin,
        device: str,
        password: str = "",
        needs_password: bool = False,
    ) -> User:
        """Use the link: verify the address, and set the password, if there is a new one or one is needed.

        The first proof ends what the browser did not prove (R10). Raises LinkDead, and BadAccount for a password
        that breaks the rules.
        """
        owner = await self.find_unverified(secret)
        hashed = None
        if password or needs_password:
            await self._rules.check(password, owner.login or "", owner.nick)
            hashed = await self._passwords.hash(password)
        await self.use_link(sha256(secret), owner, browser, origin=origin, device=device, password_hash=hashed)
        return owner

    async def use_link(
        self,
        digest: bytes,
        owner: User,
        browser: ProvingBrowser,
        *,
        origin: AuditOrigin,
        device: str,
        password_hash: str | None = None,
    ) -> None:
        """Verify the address with the link of this digest. Raises LinkDead."""
        actor = as_owner(origin, owner)
        entry = self._recorder.record(AuditEvent.EMAIL_VERIFIED, actor, subject=owner.user_id)
        notices = self._links.proof_notices(owner, actor, device, [entry])
        proving = replace(browser, sets_password=password_hash is not None)
        await self._store.verify_email(digest, password_hash, proving, notices, self._clock.now())

    async def _create_or_notify(self, account: NewAccount, requester: LinkRequester) -> None:
        while (known := await self._store.user_by_login(account.login)) is None:
            try:
                await self._create(account, requester)
            except (LoginTaken, UserIdTaken):  # a concurrent request was faster, or the ID is used: look again
                continue
            return
        await self._notify_existing(known, account, requester)

    async def _create(self, account: NewAccount, requester: LinkRequester) -> None:
        user = User(
            user_id=new_user_id(),
            login=account.login,
            nick=account.nick,
            password_hash=await self._passwords.hash(account.password),
            lang=requester.lang,
            reg_time=self._clock.now(),
            meta={JOINED_KEY: SELF_REGISTERED},
            password_browser=requester.browser,
        )
        prepared = self._links.prepare(
            LinkKind.VERIFY, to=account.login, lang=requester.lang, origin=requester.origin
        )
        entry = self._recorder.record(
            AuditEvent.USER_REGISTERED,
            as_owner(requester.origin, user),
            subject=user.user_id,
            personal={"login": account.login, "nick": account.nick},
        )
        pending = self._pending.prepare(account.login, requester, user.user_id)
        await self._store.create_with_link(user, prepared.link, entry, prepared.mails, pending)

    async def _notify_existing(self, known: User, account: NewAccount, requester: LinkRequester) -> None:
        """Resend the link when the same form is sent twice; otherwise notify the owner and end pending links.

        The account may have been registered by a stranger, with the stranger's password. Then the owner must not
        verify the address with a link of that registration. An imported hash is not compared: its time would tell.
        """
        password_hash = known.password_hash
        if password_hash is None or is_imported(password_hash):
            password_hash = await self._passwords.decoy_hash()
        is_the_same = await self._passwords.matches(account.password, password_hash)
        if is_the_same and awaits_verification(known):
            await self._renew(known, account.login, requester)
            return
        mail = self._composer.compose(
            MailTemplate.ALREADY_REGISTERED, to=known.login or "", lang=known.lang, address=requester.origin.address
        )
        entry = self._recorder.record(AuditEvent.REGISTERED_AGAIN, requester.origin, subject=known.user_id)
        pending = self._pending.prepare(account.login, requester)
        await self._store.record_repeated_registration(known, entry, (mail,), pending)

    async def _renew(self, known: User, login: str, requester: LinkRequester) -> None:
        """Send the link again; the browser that has just shown the password waits for it from now on."""
        prepared = self._links.prepare(
            LinkKind.VERIFY, to=known.login or "", lang=known.lang, origin=requester.origin
        )
        entry = self._recorder.record(AuditEvent.VERIFICATION_SENT, requester.origin, subject=known.user_id)
        pending = self._pending.prepare(login, requester, known.user_id)
        await self._store.renew_registration(known, prepared.link, entry, prepared.mails, pending)


def refuse_foreign_domain(login: str, domains: tuple[str, ...]) -> None:
    """Raise DomainRefused for an address outside the allowed domains, if there are any."""
    if domains and login_key(login).rpartition("@")[2] not in domains:
        raise DomainRefused(f"only email addresses at {', '.join(domains)} are allowed")


def awaits_verification(user: User) -> bool:
    """Return whether the account awaits verification of its address; an invited account awaits its invitation."""
    return not user.email_verified and not user.blocked and user.password_hash is not None
