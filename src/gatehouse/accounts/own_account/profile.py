"""The account page's actions: profile, password change, deletion, and the activity list."""

from collections.abc import Iterable
from dataclasses import replace

from gatehouse.accounts.administration import check_nick
from gatehouse.accounts.model import User, UserSession
from gatehouse.accounts.own_account.model import AccountActivity, AccountDetails, OwnAccountStore
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.sign_in import PasswordAttempt, PasswordSignIn
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.mail.model import MailTemplate


def activity_of(records: Iterable[AuditRecord], user_id: str) -> tuple[AccountActivity, ...]:
    return tuple(
        AccountActivity(at=record.at, event=record.event, address=visible_address(record, user_id))
        for record in records
    )


def visible_address(record: AuditRecord, user_id: str) -> str:
    """Return the address of the action; the address of another person, an administrator, is hidden."""
    if record.actor.isdecimal() and record.actor != user_id:
        return ""
    return (record.personal or {}).get("address", "")


# Nick, language, and everything the account page shows.


class AccountProfile:
    def __init__(self, *, store: OwnAccountStore, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock

    async def load_details(self, user: User) -> AccountDetails:
        return await self._store.account_details(user.user_id, self._clock.now())

    async def rename(self, user: User, nick: str, origin: AuditOrigin) -> None:
        """Set the nick. Raises BadAccount."""
        checked = check_nick(nick)
        entry = self._recorder.record(
            AuditEvent.PROFILE_CHANGED,
            origin,
            subject=user.user_id,
            details={"field": "nick"},
            personal={"nick": checked},
        )
        await self._store.set_nick(user.user_id, checked, entry)

    async def set_language(self, user: User, lang: str, origin: AuditOrigin) -> None:
        """Set the language of pages and emails; the caller checks that it is supported."""
        entry = self._recorder.record(
            AuditEvent.PROFILE_CHANGED, origin, subject=user.user_id, details={"field": "lang", "lang": lang}
        )
        await self._store.set_lang(user.user_id, lang, entry)


# Change of the password by its owner, or the first password of an account without one.


class PasswordChange:
    def __init__(
        self,
        *,
        store: OwnAccountStore,
        sign_in: PasswordSignIn,
        passwords: Passwords,
        rules: PasswordRules,
        notifier: AccountNotifier,
        clock: Clock,
    ) -> None:
        self._store = store
        self._sign_in = sign_in
        self._passwords = passwords
        self._rules = rules
        self._notifier = notifier
        self._clock = clock

    async def change_password(
        self,
        signed_in: UserSession,
        password: str,
        *,
        current_attempt: PasswordAttempt,
        origin: AuditOrigin,
        device: str,
    ) -> None:
        """Set the password, keep this session, end every other session and token, and notify the owner by email.

        The current password costs and counts like a sign-in attempt. Raises SignInRefused, TooMany, BadAccount for
        a password that breaks the rules, and UserChanged.
        """
        user = signed_in.user
        if user.password_hash is not None:
            await self._sign_in.verify(current_attempt)
        await self._rules.check(password, user.login or "", user.nick)
        await self._store.set_password(
            user,
            await self._passwords.hash(password),
            self._notifier.record(AuditEvent.PASSWORD_CHANGED, user, origin, first=user.password_hash is None),
            self._notifier.mails(MailTemplate.PASSWORD_CHANGED, user, origin, device),
            keep=signed_in.session.digest,
            now=self._clock.now(),
        )


# Deletion of an account: personal data is erased, the ID is never reused, the audit log stays complete (OP-14).


class Erasure:
    def __init__(self, *, store: OwnAccountStore, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock

    async def erase(self, user: User, origin: AuditOrigin, *, even_last_administrator: bool = False) -> None:
        """Erase the account with every session, token and link. Raises UserNotFound, LastAdministrator."""
        # Without the address, because this record is never erased.
        entry = self._recorder.record(AuditEvent.USER_ERASED, replace(origin, address=""), subject=user.user_id)
        await self._store.erase_user(
            user.user_id, entry, even_last_administrator=even_last_administrator, now=self._clock.now()
        )
