"""A password changed by whoever knows the present one, or set where there was none."""

from gatehouse.accounts.model import UserSession
from gatehouse.accounts.own.store import PasswordChangeStore
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.second_factors.telling import AccountNotifier
from gatehouse.accounts.sign_in import PasswordAttempt, PasswordSignIn
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.mail.model import MailTemplate


class PasswordChange:
    def __init__(
        self,
        *,
        store: PasswordChangeStore,
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
        """Set it, keep this session, and end every other one and every token; the owner is told by mail.

        The present password is guessed at the cost of a sign-in and counted like one. Raises SignInRefused,
        TooMany, BadAccount for a password that breaks the rules, and UserChanged.
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
