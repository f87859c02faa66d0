"""Codes by text message at sign-ins: the weakest factor, off unless settings allow it (R11).

They are never recent authentication, and not accepted for an account with a protected role of application 1. An
account keeps needing its second factor when codes are not accepted: otherwise wrong codes would open it to the
password alone.
"""

from collections.abc import Awaitable, Callable

from gatehouse.accounts.model import User
from gatehouse.accounts.phones.model import (
    PhoneNotices,
    PhoneOutcome,
    PhonePurpose,
    PhonesOff,
    PhoneStore,
)
from gatehouse.accounts.phones.numbers import country_of
from gatehouse.accounts.phones.verification import PhoneNumbers
from gatehouse.accounts.second_factors.codes import RecoveryCodes
from gatehouse.accounts.second_factors.model import Factor, FactorMissing
from gatehouse.accounts.second_factors.notifications import AccountNotifier, reason_details
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.mail.model import MailTemplate


class PhoneCodes:
    def __init__(
        self,
        *,
        store: PhoneStore,
        phones: PhoneNumbers,
        recovery: RecoveryCodes,
        notifier: AccountNotifier,
        clock: Clock,
        has_protected_role: Callable[[User], Awaitable[bool]],
    ) -> None:
        self._store = store
        self._phones = phones
        self._recovery = recovery
        self._notifier = notifier
        self._clock = clock
        self._has_protected_role = has_protected_role

    @property
    def is_on(self) -> bool:
        policy = self._phones.policy
        return policy.is_on and policy.confirms_sign_in

    async def may_be_enabled_by(self, user: User) -> bool:
        """Whether codes may confirm sign-ins to this account, now and to its number."""
        if not (self.is_on and user.phone_verified and country_of(user.phone) in self._phones.policy.countries):
            return False
        return not await self._has_protected_role(user)

    async def is_available_to(self, user: User) -> bool:
        """Whether a code to the account's number is accepted now."""
        return user.phone_code and not user.phone_closed and await self.may_be_enabled_by(user)

    async def enable(self, user: User, *, origin: AuditOrigin, device: str = "") -> tuple[str, ...]:
        """Enable codes by text message and return recovery codes to show, if the account had none left.

        Raises PhonesOff and FactorExists.
        """
        if not await self.may_be_enabled_by(user):
            raise PhonesOff
        codes = self._recovery.generate(user)
        entry, mails = self._notifier.factor_added(Factor.PHONE, user, origin, device)
        stores_codes = await self._store.enable_phone_codes(user.user_id, user.phone, codes.digests, entry, mails)
        return codes.codes if stores_codes else ()

    async def disable(self, user: User, *, origin: AuditOrigin, device: str = "", reason: str = "") -> None:
        entry, mails = self._notifier.factor_removed(Factor.PHONE, user, origin, device, reason)
        await self._store.disable_phone_codes(user.user_id, entry, mails)

    async def open(self, user: User, *, origin: AuditOrigin, reason: str = "") -> None:
        """Accept codes again after too many wrong ones; nothing happens if the phone is open."""
        entry = self._notifier.record(AuditEvent.PHONE_OPENED, user, origin, **reason_details(reason))
        await self._store.open_phone(user.user_id, entry)

    async def send(self, user: User, *, browser: bytes, source: str, origin: AuditOrigin) -> None:
        """Send a code, which replaces the account's earlier one. Raises FactorMissing and TooMany.

        `source` is empty after a right password or passkey: then the limit of addresses does not count.
        """
        if not await self.is_available_to(user):
            raise FactorMissing
        await self._phones.queue_code(
            user, PhonePurpose.SIGN_IN, user.phone, browser=browser, source=source, origin=origin
        )

    async def spend(self, user: User, code: str, *, browser: bytes, origin: AuditOrigin, device: str = "") -> bool:
        """Use a code in the browser that asked for it; True for exactly one caller. A wrong code counts."""
        if not await self.is_available_to(user):
            return False
        closing = PhoneNotices(
            entries=(self._notifier.record(AuditEvent.PHONE_CLOSED, user, origin),),
            mails=self._notifier.mails(MailTemplate.PHONE_CLOSED, user, origin, device),
        )
        digest = self._phones.code_digest(user, PhonePurpose.SIGN_IN, browser, code)
        outcome = await self._store.try_phone_code(user.user_id, user.phone, digest, closing, self._clock.now())
        self._phones.outcomes[outcome.value] += 1
        return outcome is PhoneOutcome.VERIFIED
