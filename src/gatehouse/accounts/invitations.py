"""Accounts created by an administrator for another person: no password until the invited person chooses one."""

from msgspec.structs import replace

from gatehouse.accounts.address_proofs.model import EndedMethods, ProvingBrowser
from gatehouse.accounts.administration import Administration
from gatehouse.accounts.email_links import EmailLinks, as_owner
from gatehouse.accounts.errors import LoginTaken, UserBlocked
from gatehouse.accounts.field_checks import check_nick
from gatehouse.accounts.model import LinkKind, OpenLink, User, check_login
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.store import EmailLinkStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256


class Invitation(SecretRecord, frozen=True, kw_only=True):
    user: User
    path: SecretText  # of a copy of its link to show, which proves nothing (R9); empty where no one may see it


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

    async def invite(self, *, login: str, nick: str, lang: str, origin: AuditOrigin) -> Invitation:
        """Create the account and send the invitation; an invitation that was not accepted is sent again.

        Raises LoginTaken when the account has a password already, and BadAccount.
        """
        known = await self._store.user_by_login(check_login(login))
        if known is None:
            return await self._create(login=login, nick=nick, lang=lang, origin=origin)
        if known.password_hash is not None or known.email_verified:
            raise LoginTaken
        return Invitation(user=known, path=await self._links.send(LinkKind.INVITE, known, origin))

    async def invite_account(self, user: User, origin: AuditOrigin) -> Invitation:
        """Send an account without a password the link to choose one. Raises UserBlocked and LoginTaken."""
        if user.blocked or user.login is None:
            raise UserBlocked(f"no link for {user.user_id}")
        if user.password_hash is not None:
            raise LoginTaken
        return Invitation(user=user, path=await self._links.send(LinkKind.INVITE, user, origin))

    async def find_link(self, secret: str) -> OpenLink:
        """Return the link and the account it invites. Raises LinkDead."""
        return await self._links.find(LinkKind.INVITE, secret)

    async def find_ending(self, link: OpenLink, browser: ProvingBrowser) -> EndedMethods:
        """Return what ends when this browser accepts the invitation (R10)."""
        return await self._links.find_ending_of(link, replace(browser, sets_password=True))

    async def accept(
        self,
        secret: str,
        browser: ProvingBrowser,
        *,
        nick: str,
        password: str,
        lang: str,
        origin: AuditOrigin,
        device: str = "",
    ) -> User:
        """Use the link: set nick, first password and language, and verify the address.

        A link that was shown does not verify it (R9).
        The language is the one of the page the person has just read; the inviting administrator could only guess
        it. Raises LinkDead and BadAccount.
        """
        link = await self.find_link(secret)
        owner = link.owner
        chosen = check_nick(nick)
        await self._rules.check(password, owner.login or "", chosen)
        hashed = await self._passwords.hash(password)
        actor = as_owner(origin, owner)
        entry = self._recorder.record(
            AuditEvent.INVITATION_ACCEPTED,
            actor,
            subject=owner.user_id,
            details={"link": "shown"} if link.is_shown else {},
            personal={"nick": chosen},
        )
        notices = self._links.proof_notices(owner, actor, device, [entry])
        proving = replace(browser, sets_password=True)
        await self._store.accept_invitation(
            sha256(secret), proving, notices, self._clock.now(), nick=chosen, password_hash=hashed, lang=lang
        )
        return owner

    async def _create(self, *, login: str, nick: str, lang: str, origin: AuditOrigin) -> Invitation:
        user = await self._administration.new_user(login=login, nick=nick, password=None, lang=lang)
        prepared = self._links.prepare(LinkKind.INVITE, to=user.login or "", lang=lang, origin=origin)
        entry = self._recorder.record(
            AuditEvent.USER_INVITED, origin, subject=user.user_id, personal={"login": login, "nick": user.nick}
        )
        await self._store.create_with_link(user, prepared.link, entry, prepared.mails)
        return Invitation(user=user, path=prepared.shown_path)
