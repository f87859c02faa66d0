"""Codes by email: the weakest factor, which does not qualify for publishing projects (R1)."""

import secrets
from collections.abc import Callable
from typing import Final

from gatehouse.accounts.model import EnabledMethods, User
from gatehouse.accounts.second_factors.codes import RecoveryCodes
from gatehouse.accounts.second_factors.model import (
    EmailNotVerified,
    Factor,
    FactorMissing,
    SameMailbox,
    SecondFactorStore,
)
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.kernel.times import MINUTE
from gatehouse.mail.model import MailTemplate
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter, ThrottleSubject

EMAIL_CODE_DIGITS: Final = 6
EMAIL_CODE_LIFETIME: Final = 600  # seconds
EMAIL_CODE_LIMIT: Final = AttemptLimit(free_attempts=5, first_delay=60, window=3_600)  # emails per account


class EmailCodes:
    def __init__(
        self,
        *,
        store: SecondFactorStore,
        key: bytes,
        recovery: RecoveryCodes,
        limiter: AttemptLimiter,
        notifier: AccountNotifier,
        clock: Clock,
        methods: Callable[[], EnabledMethods],
    ) -> None:
        """`key` is the installation's: a stolen database alone must not allow guessing a million codes.

        `methods` returns what people can sign in with now.
        """
        self._methods = methods
        self._store = store
        self._key = key
        self._recovery = recovery
        self._limiter = limiter
        self._notifier = notifier
        self._clock = clock

    async def enable(self, user: User, *, origin: AuditOrigin, device: str = "") -> tuple[str, ...]:
        """Enable codes by email and return recovery codes to show, if the account had none left.

        Raises EmailNotVerified, FactorExists, and SameMailbox for an account with no other sign-in method.
        """
        if user.login is None or not user.email_verified:
            raise EmailNotVerified
        if user.password_hash is None and not user.passkeys and not self._methods().has_identity(user):
            raise SameMailbox
        codes = self._recovery.generate(user)
        entry, mails = self._notifier.factor_added(Factor.EMAIL, user, origin, device)
        stores_codes = await self._store.enable_email_codes(user.user_id, codes.digests, entry, mails)
        return codes.codes if stores_codes else ()

    async def disable(self, user: User, *, origin: AuditOrigin, device: str = "", reason: str = "") -> None:
        entry, mails = self._notifier.factor_removed(Factor.EMAIL, user, origin, device, reason)
        await self._store.disable_email_codes(user.user_id, entry, mails)

    async def send(self, user: User, *, origin: AuditOrigin, device: str = "") -> None:
        """Send a new code, which replaces the previous one. Raises FactorMissing and TooMany."""
        if not user.email_code:
            raise FactorMissing
        await self._limiter.begin_attempt([ThrottleSubject(("email-code", user.user_id), EMAIL_CODE_LIMIT)])
        code = f"{secrets.randbelow(10**EMAIL_CODE_DIGITS):0{EMAIL_CODE_DIGITS}}"
        minutes = str(EMAIL_CODE_LIFETIME // MINUTE)
        mails = self._notifier.mails(MailTemplate.EMAIL_CODE, user, origin, device, code=code, minutes=minutes)
        now = self._clock.now()
        await self._store.put_email_code(
            user.user_id, self._digest(user, code), mails, now=now, expires_at=now + EMAIL_CODE_LIFETIME
        )

    async def spend(self, user: User, code: str) -> bool:
        """Use a code; True for exactly one caller. A wrong code counts against the current one."""
        return await self._store.try_email_code(user.user_id, self._digest(user, code), self._clock.now())

    def _digest(self, user: User, code: str) -> bytes:
        # With the address: a code sent to the old address proves nothing about the new one.
        return hmac_sha256(self._key, f"email-code:{user.user_id}:{user.login_key}:{code}".encode())
