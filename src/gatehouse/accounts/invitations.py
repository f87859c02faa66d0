"""Accounts made by an administrator for somebody else: no password until the invited person chooses one."""

from gatehouse.accounts.administration import Administration, check_nick
from gatehouse.accounts.errors import LoginTaken
from gatehouse.accounts.links import EmailLinks, as_owner
from gatehouse.accounts.logins import check_login, login_key
from gatehouse.accounts.model import LinkKind, User
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.store import InvitationStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256


class Invitations:
    def __init__(
        self,
        *,
        store: InvitationStore,
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
