"""Change of the password by its owner, or the first password of an account without one."""

from collections.abc import Callable

from gatehouse.accounts.model import EnabledMethods, User
from gatehouse.accounts.own_account.model import OwnAccountStore
from gatehouse.accounts.password_rules import PasswordRules
from gatehouse.accounts.passwords import Passwords
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.session_model import PASSWORD_PROOF, UserSession
from gatehouse.accounts.sign_in import PasswordAttempt, PasswordSignIn
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.mail.model import MailTemplate


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
        methods: Callable[[], EnabledMethods],
    ) -> None:
        """`methods` returns what people can sign in with now."""
        self._methods = methods
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
            await self._sign_in.verify_owner(user, current_attempt)
        await self._rules.check(password, user.login or "", user.nick)
        await self._store.set_password(
            user,
            await self._passwords.hash(password),
            self._notifier.record(AuditEvent.PASSWORD_CHANGED, user, origin, first=user.password_hash is None),
            self._notifier.mails(MailTemplate.PASSWORD_CHANGED, user, origin, device),
            keep=signed_in.session.digest,
            proved=signed_in.session.with_proofs(PASSWORD_PROOF),
            now=self._clock.now(),
        )

    async def remove_password(self, user: User, *, origin: AuditOrigin, device: str) -> None:
        """Remove the password of an account that has a passkey and another way to recover it; sessions stay.

        Raises LastSignInMethod and UserChanged.
        """
        entry = self._notifier.record(AuditEvent.PASSWORD_REMOVED, user, origin)
        mails = self._notifier.mails(MailTemplate.PASSWORD_REMOVED, user, origin, device)
        await self._store.remove_password(user, entry, mails, methods=self._methods())
