"""Accounts that people make for themselves, and the proof that the address is theirs.

The answer never tells whether an address has an account already: its owner is told by mail instead.
"""

from dataclasses import dataclass, field

from gatehouse.accounts.administration import check_nick
from gatehouse.accounts.errors import DomainRefused, LoginTaken, RegistrationClosed, UserIdTaken
from gatehouse.accounts.links import Asker, Links, by_the_owner
from gatehouse.accounts.logins import check_login, login_key
from gatehouse.accounts.model import JOINED, REGISTERED, LinkKind, User
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.store import RegistrationStore
from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_user_id
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    is_open: bool
    domains: tuple[str, ...] = ()  # the only ones; none means any


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    login: str
    nick: str
    password: str = field(repr=False)


class Registration:
    def __init__(
        self,
        *,
        store: RegistrationStore,
        links: Links,
        passwords: Passwords,
        rules: PasswordRules,
        composer: Composer,
        recorder: Recorder,
        clock: Clock,
        policy: Policy,
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

    async def register(self, newcomer: Newcomer, asker: Asker) -> None:
        """Make the account and mail its proof, or tell the owner of the one that exists; nobody else learns which.

        Raises BadAccount for what is wrong with the input itself.
        """
        self.refuse_when_closed()
        login, nick = check_login(newcomer.login), check_nick(newcomer.nick)
        self._check_domain(login)
        await self._rules.check(newcomer.password, login, nick)
        if await self._links.may_write_to(login, asker.source):
            await self._admit(Newcomer(login=login, nick=nick, password=newcomer.password), asker)

    async def send_again(self, login: str, asker: Asker) -> None:
        """Mail a new proof to an account that waits for one; an address without one looks the same."""
        checked = check_login(login)
        if not await self._links.may_write_to(checked, asker.source):
            return
        known = await self._store.user_by_login(login_key(checked))
        waits = known is not None and is_unproved(known)
        await self._links.send_or_pretend(LinkKind.VERIFY, known if waits else None, checked, asker)

    async def unproved(self, secret: str) -> User:
        """Whose address the link would confirm. Raises LinkDead."""
        return await self._links.owner(LinkKind.VERIFY, secret)

    async def verify(self, secret: str, origin: Origin) -> User:
        """Spend the link: its owner's address is confirmed. Nobody is signed in by it. Raises LinkDead."""
        owner = await self.unproved(secret)
        entry = self._recorder.record(Event.EMAIL_VERIFIED, by_the_owner(origin, owner), subject=owner.user_id)
        await self._store.verify_email(sha256(secret), entry, self._clock.now())
        return owner

    def _check_domain(self, login: str) -> None:
        if self.domains and login_key(login).rpartition("@")[2] not in self.domains:
            raise DomainRefused(f"only email addresses at {', '.join(self.domains)} can register")

    async def _admit(self, newcomer: Newcomer, asker: Asker) -> None:
        while (known := await self._store.user_by_login(login_key(newcomer.login))) is None:
            try:
                await self._create(newcomer, asker)
            except (LoginTaken, UserIdTaken):  # somebody was faster, or had that id before: look again
                continue
            return
        await self._again(known, newcomer, asker)

    async def _create(self, newcomer: Newcomer, asker: Asker) -> None:
        user = User(
            user_id=new_user_id(),
            login=newcomer.login,
            nick=newcomer.nick,
            password_hash=await self._passwords.hash(newcomer.password),
            lang=asker.lang,
            reg_time=self._clock.now(),
            meta={JOINED: REGISTERED},
        )
        prepared = self._links.prepare(LinkKind.VERIFY, to=newcomer.login, lang=asker.lang, origin=asker.origin)
        entry = self._recorder.record(
            Event.USER_REGISTERED,
            by_the_owner(asker.origin, user),
            subject=user.user_id,
            personal={"login": newcomer.login, "nick": newcomer.nick},
        )
        await self._store.register(user, prepared.link, entry, prepared.mails)

    async def _again(self, known: User, newcomer: Newcomer, asker: Asker) -> None:
        """The same form sent twice gets its letter twice; anyone else is somebody else.

        Then the owner is told, and what would confirm the address is ended: it may be the stranger who came
        first, with a password of his own, and his link must not be the one that the owner opens.
        """
        kept = known.password_hash or await self._passwords.decoy()
        is_the_same = await self._passwords.matches(newcomer.password, kept)
        if is_the_same and is_unproved(known):
            await self._links.send(LinkKind.VERIFY, known, asker.origin)
            return
        mail = self._composer.compose(
            Template.ALREADY_REGISTERED, to=known.login or "", lang=known.lang, address=asker.origin.address
        )
        entry = self._recorder.record(Event.REGISTERED_AGAIN, asker.origin, subject=known.user_id)
        await self._store.registered_again(known, entry, (mail,))


def is_unproved(user: User) -> bool:
    """Whether the account waits for the proof of its address; an invited one waits for its invitation."""
    return not user.email_verified and not user.blocked and user.password_hash is not None
