"""Every second factor, over one database and a clock that the test advances."""

import re
from dataclasses import dataclass

import msgspec
import pyotp

from gatehouse.accounts.model import User
from gatehouse.accounts.phones.model import PhonePolicy
from gatehouse.accounts.phones.verification import PhoneNumbers
from gatehouse.accounts.second_factors.codes import RecoveryCodes
from gatehouse.accounts.second_factors.email_codes import EmailCodes
from gatehouse.accounts.second_factors.model import TotpEnrollment
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.accounts.second_factors.passkeys import Passkeys
from gatehouse.accounts.second_factors.phone_codes import PhoneCodes
from gatehouse.accounts.second_factors.totp import Totp
from gatehouse.accounts.second_factors.verification import SecondFactors
from gatehouse.accounts.second_factors.webauthn import RelyingParty
from gatehouse.audit.recorder import Recorder
from gatehouse.mail.composer import Composer, MailBrand
from gatehouse.mail.model import Message, OutboxMail, mail_sealing_purpose
from gatehouse.storage.database import Storage
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter
from tests.support.authenticator import Authenticator
from tests.support.builders import ALL_METHODS, AUDIT_KEY, ORIGIN, a_record, a_user
from tests.support.clock import MovableClock
from tests.support.keys import master_keys

BASE_URL = "https://id.studio.example:8443"
BROWSER = bytes(32)
CODE_KEY = bytes(range(32))


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondFactorSetup:
    storage: Storage
    clock: MovableClock
    totp: Totp
    email_codes: EmailCodes
    recovery: RecoveryCodes
    passkeys: Passkeys
    second_factors: SecondFactors

    async def create_person(self, **fields: object) -> User:
        user = a_user(email_verified=True, password_hash="hash", **fields)
        await self.storage.accounts.create_user(user, a_record())
        return user

    async def reload(self, user: User) -> User:
        """The account as stored now."""
        return await self.storage.accounts.user(user.user_id)

    async def with_totp(self) -> tuple[User, pyotp.TOTP]:
        """A person who set up TOTP a minute ago, and their authenticator app."""
        user = await self.create_person()
        enrolment = await self.totp.begin_enrollment(user)
        await self.totp.confirm_enrollment(user, self.code_of(enrolment), origin=ORIGIN)
        await self.clock.advance(60)
        return await self.reload(user), pyotp.TOTP(enrolment.secret)

    async def with_email_code(self) -> User:
        user = await self.create_person()
        await self.email_codes.enable(user, origin=ORIGIN)
        return await self.reload(user)

    async def with_passkey(self, user: User | None = None) -> tuple[User, Authenticator]:
        user = user or await self.create_person()
        authenticator = Authenticator(BASE_URL)
        await self.register(user, authenticator)
        return await self.reload(user), authenticator

    async def register(self, user: User, authenticator: Authenticator, **lies: object) -> tuple[str, ...]:
        options = await self.passkeys.registration_options(user, browser=BROWSER)
        answer = authenticator.create(options, **lies)
        return await self.passkeys.register(user, answer, name="Laptop", browser=BROWSER, origin=ORIGIN)

    async def mailed_code(self, user: User) -> str:
        """Request an email code and read it."""
        await self.new_messages()
        await self.email_codes.send(user, origin=ORIGIN)
        (message,) = await self.new_messages()
        match = re.search(r"\b[0-9]{6}\b", message.text)
        assert match is not None
        return match.group()

    async def new_messages(self) -> list[Message]:
        """Return the messages queued since the last call."""
        claims = await self.storage.mail.claim_due(self.clock.now(), 10**9, 100)
        return [open_message(claim.mail) for claim in claims]

    async def events(self, user: User) -> list[str]:
        """The person's audit events since their account was created.

        They are sorted by name, because records of the same second have no order.
        """
        newest = await self.storage.audit.newest_records(100, user.user_id, "")
        return sorted(record.event for record in newest)

    def code_of(self, enrolment: TotpEnrollment, *, steps: int = 0) -> str:
        return code_at(pyotp.TOTP(enrolment.secret), self.clock, steps=steps)


def open_message(mail: OutboxMail) -> Message:
    return msgspec.json.decode(
        master_keys().open(mail.sealed, purpose=mail_sealing_purpose(mail.mail_id)), type=Message
    )


def code_at(app: pyotp.TOTP, clock: MovableClock, *, steps: int = 0) -> str:
    """The code that the app shows now, or that many steps later."""
    return app.generate_otp(clock.now() // 30 + steps)


def wrong_code(code: str) -> str:
    return f"{(int(code) + 1) % 10**6:06}"


async def no_protected_role(_user: User) -> bool:
    return False


def second_factor_setup(storage: Storage) -> SecondFactorSetup:
    clock = MovableClock()
    store = storage.second_factors
    composer = Composer(sealer=master_keys(), base_url=BASE_URL, clock=clock, brand=lambda: MailBrand("Gatehouse"))
    telling = AccountNotifier(recorder=Recorder(mac_key=AUDIT_KEY, clock=clock), composer=composer)
    recovery = RecoveryCodes(store=store, key=CODE_KEY, notifier=telling, clock=clock)
    totp = Totp(
        store=store,
        masters=master_keys(),
        recovery=recovery,
        notifier=telling,
        clock=clock,
        issuer=lambda: "Gatehouse",
    )
    guesses = AttemptLimiter(store=storage.throttle, limit=AttemptLimit(), clock=clock)
    email_codes = EmailCodes(
        store=store,
        key=CODE_KEY,
        recovery=recovery,
        limiter=guesses,
        notifier=telling,
        clock=clock,
        methods=lambda: ALL_METHODS,
    )
    phones = PhoneNumbers(
        store=storage.phones,
        key=CODE_KEY,
        composer=composer,
        notifier=telling,
        clock=clock,
        policy=lambda: PhonePolicy(countries=frozenset(), can_send=False, messages_a_day=0),
    )
    return SecondFactorSetup(
        storage=storage,
        clock=clock,
        totp=totp,
        email_codes=email_codes,
        recovery=recovery,
        passkeys=Passkeys(
            store=storage.passkeys,
            party=lambda: RelyingParty(name="Gatehouse", origin=BASE_URL, host="id.studio.example"),
            recovery=recovery,
            notifier=telling,
            clock=clock,
            methods=lambda: ALL_METHODS,
        ),
        second_factors=SecondFactors(
            store=store,
            totp=totp,
            email_codes=email_codes,
            phone_codes=PhoneCodes(
                store=storage.phones,
                phones=phones,
                recovery=recovery,
                notifier=telling,
                clock=clock,
                has_protected_role=no_protected_role,
            ),
            recovery=recovery,
            limiter=guesses,
            notifier=telling,
            clock=clock,
        ),
    )
