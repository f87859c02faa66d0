"""Change of an account's email address, confirmed only by the link sent to the new address (LG-19).

The response never reveals whether the new address has an account; its owner gets an email without a link instead.
"""

from collections.abc import Callable, Sequence

from gatehouse.accounts.address_proofs.model import proving_browser
from gatehouse.accounts.email_links import EmailLinks, PreparedLink, as_owner
from gatehouse.accounts.errors import LinkDead, LinkNeedsSession
from gatehouse.accounts.model import LinkKind, User, check_new_login, login_key
from gatehouse.accounts.own_account.model import EmailChange, OwnAccountStore, SameAddress
from gatehouse.accounts.registration import refuse_foreign_domain
from gatehouse.accounts.session_model import UserSession
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

    async def request_change(
        self, user: User, login: str, *, session_id: str, source: str, origin: AuditOrigin
    ) -> None:
        """Send the link; nothing changes until it is opened. Raises BadAccount for invalid input."""
        checked = check_new_login(login)
        self._refuse_unusable(user, checked)
        if not await self._links.may_email(checked, source):
            return
        prepared = self._links.prepare(LinkKind.CHANGE, to=checked, lang=user.lang, origin=origin)
        entry = self._recorder.record(
            AuditEvent.EMAIL_CHANGE_ASKED, origin, subject=user.user_id, personal={"login": checked}
        )
        mails = await self._request_mails(checked, prepared, origin)
        change = EmailChange(owner=user, login=checked, session_id=session_id)
        await self._store.save_email_change(change, prepared.link, entry, mails)

    async def find_change(self, secret: str) -> EmailChange:
        """Return what this link would change. Raises LinkDead."""
        change = await self._store.find_email_change(sha256(secret), self._clock.now())
        if change is None:
            raise LinkDead("no open link to change the email address")
        return change

    async def confirm_change(
        self, secret: str, digest: bytes, signed_in: UserSession | None, *, origin: AuditOrigin, device: str = ""
    ) -> EmailChange:
        """Use the link: set the new, verified address and notify both addresses.

        Raises LinkDead, and LinkNeedsSession in another browser than the one that asked.
        """
        change = await self.find_change(secret)
        if not change.may_be_proved_in(proving_browser(change.owner, digest, signed_in)):
            raise LinkNeedsSession
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
        if user.login is not None and login_key(login) == login_key(user.login):
            raise SameAddress("this is already the account's email address")
        refuse_foreign_domain(login, self._domains())

    async def _request_mails(self, login: str, prepared: PreparedLink, origin: AuditOrigin) -> Sequence[OutboxMail]:
        """Return the email with the link, or for an address that has an account a notice to its owner."""
        known = await self._store.user_by_login(login)
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
