"""Verification of a second factor of any kind."""

import asyncio
from collections import Counter
from typing import Final
from weakref import WeakValueDictionary

from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.codes import RecoveryCodes, normalize_recovery_code
from gatehouse.accounts.second_factors.email_codes import EmailCodes
from gatehouse.accounts.second_factors.model import (
    EnabledFactors,
    Factor,
    SecondFactorStore,
    SecondFactorWrong,
    enabled_factors,
    factors_by_last_use,
)
from gatehouse.accounts.second_factors.notifications import AccountNotifier, reason_details
from gatehouse.accounts.second_factors.phone_codes import PhoneCodes
from gatehouse.accounts.second_factors.totp import Totp, is_six_digit_code
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter, ThrottleSubject

FACTOR_LIMIT: Final = AttemptLimit(free_attempts=10)  # per account, from any session or source (LG-13)


class SecondFactors:
    def __init__(
        self,
        *,
        store: SecondFactorStore,
        totp: Totp,
        email_codes: EmailCodes,
        phone_codes: PhoneCodes,
        recovery: RecoveryCodes,
        limiter: AttemptLimiter,
        notifier: AccountNotifier,
        clock: Clock,
    ) -> None:
        self._store = store
        self._totp = totp
        self._email_codes = email_codes
        self._phone_codes = phone_codes
        self._recovery = recovery
        self._limiter = limiter
        self._notifier = notifier
        self._clock = clock
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.outcomes: Counter[tuple[str, ...]] = Counter()  # factor and result, for the metrics of this process

    async def load_factors(self, user: User) -> EnabledFactors:
        """Return the factors that are accepted now."""
        enabled = factors_by_last_use(user, await self._store.factor_overview(user.user_id))
        if not user.phone_code or await self._phone_codes.is_available_to(user):
            return enabled
        return replace(enabled, methods=tuple(one for one in enabled.methods if one is not Factor.PHONE))

    async def verify(
        self,
        user: User,
        otp: str,
        method: Factor | None = None,
        *,
        origin: AuditOrigin,
        device: str = "",
        browser: bytes = b"",
    ) -> Factor:
        """Use the code and return its factor; raise SecondFactorWrong, or TooMany while attempts are blocked.

        Without `method` the shape of the code decides, and without `browser` none by text message is accepted. Only
        a right code clears earlier failures, not a right password or a new session.
        """
        otp = "".join(otp.split())  # apps show a code in two halves, and people type it that way
        subject = [ThrottleSubject(("factor", user.user_id), FACTOR_LIMIT)]
        # One at a time per account: concurrent attempts would all pass the check before the first one fails.
        async with self._locks.setdefault(user.user_id, asyncio.Lock()):
            await self._limiter.refuse_blocked_subjects(subject)
            for factor in possible_factors(user, otp, method):
                if await self._spend(factor, user, otp, origin=origin, device=device, browser=browser):
                    await self._limiter.clear_all_failures(subject)
                    self.outcomes[factor.value, "success"] += 1
                    return factor
            await self._limiter.record_failures(subject)
        self.outcomes["code", "refused"] += 1
        raise SecondFactorWrong(f"user {user.user_id}")

    async def reset(self, user: User, *, origin: AuditOrigin, reason: str = "") -> None:
        """Remove every factor at an administrator's request, and end every session and token of the account."""
        entry = self._notifier.record(AuditEvent.FACTORS_RESET, user, origin, **reason_details(reason))
        mails = [
            mail
            for factor in enabled_factors(user)
            for mail in self._notifier.factor_removed(factor, user, origin, "")[1]
        ]
        await self._store.remove_all_factors(user.user_id, entry, mails, self._clock.now())

    async def _spend(
        self, factor: Factor, user: User, otp: str, *, origin: AuditOrigin, device: str, browser: bytes
    ) -> bool:
        match factor:
            case Factor.TOTP:
                return await self._totp.spend(user, otp)
            case Factor.EMAIL:
                return await self._email_codes.spend(user, otp)
            case Factor.PHONE:
                return bool(browser) and await self._phone_codes.spend(
                    user, otp, browser=browser, origin=origin, device=device
                )
            case Factor.RECOVERY:
                return await self._recovery.spend(user, otp, origin=origin, device=device)
            case Factor.PASSKEY:
                return False  # signs a challenge and is never typed


def possible_factors(user: User, otp: str, method: Factor | None) -> list[Factor]:
    """Return the factors the typed text can belong to, in the order they are tried."""
    possible: list[Factor] = []
    if is_six_digit_code(otp):
        possible += [Factor.TOTP] if user.sealed_totp is not None else []
        possible += [Factor.EMAIL] if user.email_code else []
        possible += [Factor.PHONE] if user.phone_code else []
    elif normalize_recovery_code(otp) is not None:
        possible = [Factor.RECOVERY]
    return [factor for factor in possible if method in (None, factor)]
