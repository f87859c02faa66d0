"""The phone number of an account: verified by a code that is sent to it (R11).

Nothing says whether another account has the number before the right code was typed.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Sequence

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import User
from gatehouse.accounts.phones.model import (
    PHONE_CODE_DIGITS,
    CountryNotOffered,
    NewPhoneCode,
    PhoneCodeGone,
    PhoneCodeWrong,
    PhoneNotices,
    PhoneOutcome,
    PhoneOwner,
    PhonePolicy,
    PhonePurpose,
    PhonesOff,
    PhoneStore,
    PhoneTaken,
    SamePhone,
)
from gatehouse.accounts.phones.numbers import check_phone, country_of
from gatehouse.accounts.second_factors.model import EmailNotVerified, Factor
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.second_factors.totp import is_six_digit_code
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.mail.composer import Composer
from gatehouse.mail.model import MailTemplate, OutboxMail


class PhoneNumbers:
    """`browser` is a digest of a secret that only this browser has: no other one uses its codes."""

    def __init__(
        self,
        *,
        store: PhoneStore,
        key: bytes,
        composer: Composer,
        notifier: AccountNotifier,
        clock: Clock,
        policy: Callable[[], PhonePolicy],
    ) -> None:
        """`key` is the installation's: a stolen database alone must not allow guessing a million codes."""
        self._store = store
        self._key = key
        self._composer = composer
        self._notifier = notifier
        self._clock = clock
        self._policy = policy
        self.outcomes: Counter[str] = Counter()  # of typed codes, for the metrics of this process

    @property
    def policy(self) -> PhonePolicy:
        return self._policy()

    async def send_code(self, user: User, phone: str, *, browser: bytes, source: str, origin: AuditOrigin) -> str:
        """Send a code to a new number and return the number in E.164; the code replaces the account's earlier one.

        Raises PhonesOff, EmailNotVerified, BadAccount, CountryNotOffered, SamePhone and TooMany.
        """
        if self.policy.is_on and not user.may_add_factors:
            raise EmailNotVerified
        number = self.check_number(phone)
        if user.phone_verified and user.phone == number:
            raise SamePhone("this is already the account's phone number").on_screen("phone_same")
        await self.queue_code(user, PhonePurpose.VERIFY, number, browser=browser, source=source, origin=origin)
        return number

    def check_number(self, phone: str) -> str:
        """Return the number in E.164 if messages are sent to it. Raises PhonesOff, BadAccount, CountryNotOffered."""
        policy = self.policy
        if not policy.is_on:
            raise PhonesOff
        number = check_phone(phone)
        if not number:
            raise BadAccount("is missing").on_screen("phone")
        if country_of(number) not in policy.countries:
            raise CountryNotOffered("numbers of this country are not accepted").on_screen("phone_country")
        return number

    def number_key(self, number: str) -> str:
        """Return what messages to this number are counted by."""
        return hmac_sha256(self._key, f"number:{number}".encode()).hex()

    async def pending(self, user: User) -> str:
        """Return the number that waits for its code."""
        return await self._store.pending_phone(user.user_id, self._clock.now())

    async def confirm(self, user: User, code: str, *, browser: bytes, origin: AuditOrigin, device: str = "") -> None:
        """Use the code and store its number as the account's. Raises PhoneCodeWrong, PhoneCodeGone, PhoneTaken."""

        def notices(phone: str, owner: PhoneOwner | None) -> PhoneNotices:
            return (
                self._taken_notices(user, owner, origin)
                if owner
                else self._verified_notices(user, phone, origin, device)
            )

        typed = "".join(code.split())
        digest = self.code_digest(user, PhonePurpose.VERIFY, browser, typed if is_six_digit_code(typed) else "")
        outcome = await self._store.verify_phone(user.user_id, digest, notices, self._clock.now())
        self.outcomes[outcome.value] += 1
        match outcome:
            case PhoneOutcome.WRONG:
                raise PhoneCodeWrong
            case PhoneOutcome.GONE:
                raise PhoneCodeGone
            case PhoneOutcome.TAKEN:
                raise PhoneTaken
            case PhoneOutcome.VERIFIED:
                return

    async def remove(self, user: User, *, origin: AuditOrigin, device: str = "") -> None:
        """Remove the number of the account; nothing happens if it has none."""
        if not user.phone:
            return
        entry = self._notifier.record(AuditEvent.PHONE_REMOVED, user, origin)
        mails = self._notifier.mails(MailTemplate.PHONE_REMOVED, user, origin, device)
        notices = self._with_ended_factor(user, entry, mails, origin, device)
        await self._store.remove_phone(user.user_id, notices, self._clock.now())

    async def queue_code(
        self, user: User, purpose: PhonePurpose, number: str, *, browser: bytes, source: str, origin: AuditOrigin
    ) -> None:
        """Queue a message with a new code, which replaces the account's earlier one. Raises TooMany."""
        code = f"{secrets.randbelow(10**PHONE_CODE_DIGITS):0{PHONE_CODE_DIGITS}}"
        new = NewPhoneCode(
            user_id=user.user_id,
            purpose=purpose,
            phone=number,
            code=self.code_digest(user, purpose, browser, code),
            number_key=self.number_key(number),
            network=source,
            created_at=self._clock.now(),
        )
        message = self._composer.compose_text_message(to=number, lang=user.lang, code=code)
        entry = self._notifier.record(AuditEvent.PHONE_CODE_SENT, user, origin, country=country_of(number))
        await self._store.put_phone_code(new, message, entry, messages_a_day=self.policy.messages_a_day)

    def _verified_notices(self, user: User, phone: str, origin: AuditOrigin, device: str) -> PhoneNotices:
        entry = self._notifier.recorder.record(
            AuditEvent.PHONE_VERIFIED,
            origin,
            subject=user.user_id,
            details={"country": country_of(phone)},
            personal={"phone": phone},
        )
        mails = self._notifier.mails(MailTemplate.PHONE_CHANGED, user, origin, device)
        return self._with_ended_factor(user, entry, mails, origin, device)

    def _with_ended_factor(
        self, user: User, entry: AuditRecord, mails: Sequence[OutboxMail], origin: AuditOrigin, device: str
    ) -> PhoneNotices:
        """Return the notices of a change that ends codes by text message, if the account has them."""
        if not user.phone_code:
            return PhoneNotices(entries=(entry,), mails=mails)
        ended, more = self._notifier.factor_removed(Factor.PHONE, user, origin, device)
        return PhoneNotices(entries=(entry, ended), mails=(*mails, *more))

    def _taken_notices(self, user: User, owner: PhoneOwner, origin: AuditOrigin) -> PhoneNotices:
        """Tell the owner, without a word about who typed the code."""
        entry = self._notifier.record(AuditEvent.PHONE_TAKEN, user, origin)
        if owner.login is None:
            return PhoneNotices(entries=(entry,))
        mail = self._composer.compose(MailTemplate.PHONE_CLAIMED, to=owner.login, lang=owner.lang)
        return PhoneNotices(entries=(entry,), mails=(mail,))

    def code_digest(self, user: User, purpose: PhonePurpose, browser: bytes, code: str) -> bytes:
        bound = f"phone-code:{purpose}:{user.user_id}:{browser.hex()}:{code}"
        return hmac_sha256(self._key, bound.encode())
