"""Change of an account's email address, confirmed only by the link sent to the new address (LG-19).

The response never reveals whether the new address has an account; its owner gets an email without a link instead.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from gatehouse.accounts.email_links import EmailLinks, PreparedLink, as_owner
from gatehouse.accounts.errors import LinkDead
from gatehouse.accounts.model import LinkKind, User, check_login, login_key
from gatehouse.accounts.own_account.model import EmailChange, OwnAccountStore, SameAddress
from gatehouse.accounts.registration import SelfRegistration, refuse_foreign_domain
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail


class EmailChanges:
    def __init__(
        self,
        *,
        store: OwnAccountStore,
        links: EmailLinks,
        composer: Composer,
        recorder: Recorder,
        clock: Clock,
        domains: Callable[[], tuple[str, ...]],
    ) -> None:
        """`domains` returns the only allowed ones; an empty tuple allows any."""
        self._store = store
        self._links = links
        self._composer = composer
        self._recorder = recorder
        self._clock = clock
        self._domains = domains

    async def request_change(self, user: User, login: str, *, source: str, origin: AuditOrigin) -> None:
        """Send the link; nothing changes until it is opened. Raises BadAccount for invalid input."""
        checked = check_login(login)
        self._refuse_unusable(user, checked)
        if not await self._links.may_email(checked, source):
            return
        prepared = self._links.prepare(LinkKind.CHANGE, to=checked, lang=user.lang, origin=origin)
        entry = self._recorder.record(
            AuditEvent.EMAIL_CHANGE_ASKED, origin, subject=user.user_id, personal={"login": checked}
        )
        mails = await self._request_mails(checked, prepared, origin)
        await self._store.save_email_change(user, prepared.link, checked, entry, mails)

    async def find_change(self, secret: str) -> EmailChange:
        """Return what this link would change. Raises LinkDead."""
        change = await self._store.find_email_change(sha256(secret), self._clock.now())
        if change is None:
            raise LinkDead("no open link to change the email address")
        return change

    async def confirm_change(self, secret: str, *, origin: AuditOrigin, device: str = "") -> EmailChange:
        """Use the link: set the new, verified address and notify both addresses. Raises LinkDead."""
        change = await self.find_change(secret)
        entry = self._recorder.record(
            AuditEvent.EMAIL_CHANGED,
            as_owner(origin, change.owner),
            subject=change.owner.user_id,
            personal={"old": change.owner.login or "", "new": change.login},
        )
        mails = self._notice_mails(change, origin, device)
        await self._store.apply_email_change(sha256(secret), change, entry, mails, self._clock.now())
        return change

    def _refuse_unusable(self, user: User, login: str) -> None:
        if login_key(login) == user.login_key:
            raise SameAddress("this is already the account's email address")
        refuse_foreign_domain(login, self._domains())

    async def _request_mails(self, login: str, prepared: PreparedLink, origin: AuditOrigin) -> Sequence[OutboxMail]:
        """Return the email with the link, or for an address that has an account a notice to its owner."""
        known = await self._store.user_by_login(login_key(login))
        if known is None:
            return prepared.mails
        to = known.login or login
        return (
            self._composer.compose(MailTemplate.ALREADY_REGISTERED, to=to, lang=known.lang, address=origin.address),
        )

    def _notice_mails(self, change: EmailChange, origin: AuditOrigin, device: str) -> Sequence[OutboxMail]:
        values = {"lang": change.owner.lang, "address": origin.address, "device": device}
        old = change.owner.login
        new = self._composer.compose(MailTemplate.EMAIL_CHANGED_NEW, to=change.login, **values)
        return (
            (new,) if old is None else (self._composer.compose(MailTemplate.EMAIL_CHANGED_OLD, to=old, **values), new)
        )


# A link that verifies an address, either the current one of an account or its new one.


class EmailVerification:
    def __init__(self, *, registration: SelfRegistration, email_changes: EmailChanges) -> None:
        self._registration = registration
        self._email_changes = email_changes

    async def find_unverified(self, secret: str) -> User:
        """Return the account with the address that the link would verify. Raises LinkDead."""
        try:
            return await self._registration.find_unverified(secret)
        except LinkDead:
            return with_new_login(await self._email_changes.find_change(secret))

    async def verify_email(self, secret: str, origin: AuditOrigin) -> User:
        """Use the link, without signing in. Raises LinkDead."""
        try:
            return await self._registration.verify_email(secret, origin)
        except LinkDead:
            return with_new_login(await self._email_changes.confirm_change(secret, origin=origin))


def with_new_login(change: EmailChange) -> User:
    return replace(change.owner, login=change.login, email_verified=True)
