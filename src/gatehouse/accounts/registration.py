"""Accounts that people make for themselves, and the proof that the address is theirs.

The answer never tells whether an address has an account already: its owner is told by mail instead.
"""

from dataclasses import dataclass, field

from gatehouse.accounts.administration import Administration, check_nick
from gatehouse.accounts.email_links import EmailLinks, LinkRequester, as_owner
from gatehouse.accounts.errors import DomainRefused, LoginTaken, RegistrationClosed, UserIdTaken
from gatehouse.accounts.model import JOINED_KEY, SELF_REGISTERED, LinkKind, User, check_login, login_key
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.store import EmailLinkStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_user_id
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationPolicy:
    is_open: bool
    domains: tuple[str, ...] = ()  # the only ones; none means any


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccount:
    login: str
    nick: str
    password: str = field(repr=False)


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
        policy: RegistrationPolicy,
    ) -> None:
        self._store = store
        self._links = links
        self._passwords = passwords
        self._rules = rules
        self._composer = composer
        self._recorder = recorder
        self._clock = clock
        self._policy = policy

    @property
    def domains(self) -> tuple[str, ...]:
        return self._policy.domains

    def refuse_when_closed(self) -> None:
        if not self._policy.is_open:
            raise RegistrationClosed

    async def register(self, account: NewAccount, requester: LinkRequester) -> None:
        """Make the account and mail its proof, or tell the owner of the one that exists; nobody else learns which.

        Raises BadAccount for what is wrong with the input itself.
        """
        self.refuse_when_closed()
        login, nick = check_login(account.login), check_nick(account.nick)
        self._check_domain(login)
        await self._rules.check(account.password, login, nick)
        if await self._links.may_email(login, requester.source):
            await self._create_or_notify(NewAccount(login=login, nick=nick, password=account.password), requester)

    async def resend_verification(self, login: str, requester: LinkRequester) -> None:
        """Mail a new proof to an account that waits for one; an address without one looks the same."""
        checked = check_login(login)
        if not await self._links.may_email(checked, requester.source):
            return
        known = await self._store.user_by_login(login_key(checked))
        waits = known is not None and awaits_verification(known)
        await self._links.send_or_simulate(LinkKind.VERIFY, known if waits else None, checked, requester)

    async def find_unverified(self, secret: str) -> User:
        """Whose address the link would confirm. Raises LinkDead."""
        return await self._links.find_owner(LinkKind.VERIFY, secret)

    async def verify_email(self, secret: str, origin: AuditOrigin) -> User:
        """Spend the link: its owner's address is confirmed. Nobody is signed in by it. Raises LinkDead."""
        owner = await self.find_unverified(secret)
        entry = self._recorder.record(AuditEvent.EMAIL_VERIFIED, as_owner(origin, owner), subject=owner.user_id)
        await self._store.verify_email(sha256(secret), entry, self._clock.now())
        return owner

    def _check_domain(self, login: str) -> None:
        if self.domains and login_key(login).rpartition("@")[2] not in self.domains:
            raise DomainRefused(f"only email addresses at {', '.join(self.domains)} can register")

    async def _create_or_notify(self, account: NewAccount, requester: LinkRequester) -> None:
        while (known := await self._store.user_by_login(login_key(account.login))) is None:
            try:
                await self._create(account, requester)
            except (LoginTaken, UserIdTaken):  # somebody was faster, or had that id before: look again
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
        await self._store.create_with_link(user, prepared.link, entry, prepared.mails)

    async def _notify_existing(self, known: User, account: NewAccount, requester: LinkRequester) -> None:
        """The same form sent twice gets its letter twice; anyone else is somebody else.

        Then the owner is told, and what would confirm the address is ended: it may be the stranger who came
        first, with a password of his own, and his link must not be the one that the owner opens.
        """
        kept = known.password_hash or await self._passwords.decoy_hash()
        is_the_same = await self._passwords.matches(account.password, kept)
        if is_the_same and awaits_verification(known):
            await self._links.send(LinkKind.VERIFY, known, requester.origin)
            return
        mail = self._composer.compose(
            MailTemplate.ALREADY_REGISTERED, to=known.login or "", lang=known.lang, address=requester.origin.address
        )
        entry = self._recorder.record(AuditEvent.REGISTERED_AGAIN, requester.origin, subject=known.user_id)
        await self._store.record_repeated_registration(known, entry, (mail,))


def awaits_verification(user: User) -> bool:
    """Whether the account waits for the proof of its address; an invited one waits for its invitation."""
    return not user.email_verified and not user.blocked and user.password_hash is not None


# Accounts made by an administrator for somebody else: no password until the invited person chooses one.


class Invitations:
    def __init__(
        self,
        *,
        store: EmailLinkStore,
        links: EmailLinks,
        administration: Administration,
        passwords: Passwords,
        rules: PasswordRules,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._store = store
        self._links = links
        self._administration = administration
        self._passwords = passwords
        self._rules = rules
        self._recorder = recorder
        self._clock = clock

    async def invite(self, *, login: str, nick: str, lang: str, origin: AuditOrigin) -> User:
        """Make the account and mail the invitation; one that was not accepted yet is mailed anew.

        Raises LoginTaken when the account has a password already, and BadAccount.
        """
        known = await self._store.user_by_login(login_key(check_login(login)))
        if known is None:
            return await self._create(login=login, nick=nick, lang=lang, origin=origin)
        if known.password_hash is not None or known.email_verified:
            raise LoginTaken
        await self._links.send(LinkKind.INVITE, known, origin)
        return known

    async def find_invited(self, secret: str) -> User:
        """Who is invited by this link. Raises LinkDead."""
        return await self._links.find_owner(LinkKind.INVITE, secret)

    async def accept(self, secret: str, *, nick: str, password: str, lang: str, origin: AuditOrigin) -> User:
        """Spend the link: nick, first password and language are set, the address is confirmed.

        The language is the one the person has just read; whoever invited could only suppose it. Raises LinkDead and
        BadAccount.
        """
        owner = await self.find_invited(secret)
        chosen = check_nick(nick)
        await self._rules.check(password, owner.login or "", chosen)
        hashed = await self._passwords.hash(password)
        entry = self._recorder.record(
            AuditEvent.INVITATION_ACCEPTED,
            as_owner(origin, owner),
            subject=owner.user_id,
            personal={"nick": chosen},
        )
        await self._store.accept_invitation(sha256(secret), chosen, hashed, entry, self._clock.now(), lang=lang)
        return owner

    async def _create(self, *, login: str, nick: str, lang: str, origin: AuditOrigin) -> User:
        user = await self._administration.new_user(login=login, nick=nick, password=None, lang=lang)
        prepared = self._links.prepare(LinkKind.INVITE, to=user.login or "", lang=lang, origin=origin)
        entry = self._recorder.record(
            AuditEvent.USER_INVITED, origin, subject=user.user_id, personal={"login": login, "nick": user.nick}
        )
        await self._store.create_with_link(user, prepared.link, entry, prepared.mails)
        return user
