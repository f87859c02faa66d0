"""Codes by e-mail: the weakest factor, and no reason to publish projects (R1)."""

import secrets
from typing import Final

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.errors import EmailNotVerified, FactorMissing
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.accounts.second_factors.recovery import RecoveryCodes
from gatehouse.accounts.second_factors.store import SecondFactorStore
from gatehouse.accounts.second_factors.telling import AccountNotifier
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.mail.model import MailTemplate
from gatehouse.throttle.guesses import AttemptLimiter, ThrottleSubject
from gatehouse.throttle.model import AttemptLimit

EMAIL_CODE_DIGITS: Final = 6
EMAIL_CODE_LIFETIME: Final = 600  # seconds
MINUTE: Final = 60
EMAIL_CODE_LIMIT: Final = AttemptLimit(
    free_attempts=5, first_delay=60, window=3_600
)  # letters one account can be made to send itself


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
    ) -> None:
        """`key` is the installation's: a million codes would not withstand whoever has only the database."""
        self._store = store
        self._key = key
        self._recovery = recovery
        self._limiter = limiter
        self._notifier = notifier
        self._clock = clock

    async def enable(self, user: User, *, origin: AuditOrigin, device: str = "") -> tuple[str, ...]:
        """Make it a factor; returns recovery codes to show, if the account had none left.

        Raises EmailNotVerified or FactorExists.
        """
        if user.login is None or not user.email_verified:
            raise EmailNotVerified
        codes = self._recovery.generate(user)
        entry, mails = self._notifier.factor_added(Factor.EMAIL, user, origin, device)
        kept = await self._store.enable_email_codes(user.user_id, codes.digests, entry, mails)
        return codes.codes if kept else ()

    async def disable(self, user: User, *, origin: AuditOrigin, device: str = "", reason: str = "") -> None:
        entry, mails = self._notifier.factor_removed(Factor.EMAIL, user, origin, device, reason)
        await self._store.disable_email_codes(user.user_id, entry, mails)

    async def send(self, user: User, *, origin: AuditOrigin, device: str = "") -> None:
        """Mail a new code, which ends the one before. Raises FactorMissing, and TooMany after some letters."""
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
        """True for the one caller who spends it; a wrong one is counted against it."""
        return await self._store.try_email_code(user.user_id, self._digest(user, code), self._clock.now())

    def _digest(self, user: User, code: str) -> bytes:
        # With the address: a code that went to the old one is no proof of the new one.
        return hmac_sha256(self._key, f"email-code:{user.user_id}:{user.login_key}:{code}".encode())
