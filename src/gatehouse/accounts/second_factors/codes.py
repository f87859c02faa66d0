"""Second factors that are typed: recovery codes, codes by email, codes of an authenticator app (S-18)."""

import base64
import binascii
import re
import secrets
from collections.abc import Callable
from typing import Final

import pyotp
from msgspec import Struct

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import EnabledMethods, User
from gatehouse.accounts.second_factors.model import (
    TOTP_STEP_SECONDS,
    EmailNotVerified,
    EnrollmentGone,
    Factor,
    FactorMissing,
    NewRecoveryCodes,
    SameMailbox,
    SecondFactorStore,
    SecondFactorWrong,
    TotpEnrollment,
    totp_sealing_purpose,
)
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal, hmac_sha256
from gatehouse.kernel.times import MINUTE
from gatehouse.keys.sealing import MasterKeys
from gatehouse.mail.model import MailTemplate
from gatehouse.throttle.limits import AttemptLimit, AttemptLimiter, ThrottleSubject

CODE_COUNT: Final = 10
GROUP_LENGTH: Final = 5  # characters; two groups over 32 letters are 50 bits
ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u
LOOK_ALIKES: Final = str.maketrans("oil", "011")
RECOVERY_CODE_SHAPE: Final = re.compile(rf"[{ALPHABET}]{{{2 * GROUP_LENGTH}}}")
MAX_TYPED_LENGTH: Final = 40  # characters of a typed code, spaces included
TOTP_BYTES: Final = range(10, 65)  # 80 bits are the least that authenticator apps use; SHA-512 takes 64 bytes


def new_recovery_code() -> str:
    first, second = ("".join(secrets.choice(ALPHABET) for _ in range(GROUP_LENGTH)) for _ in range(2))
    return f"{first}-{second}"


def normalize_recovery_code(text: str) -> str | None:
    """Return the canonical spelling of a typed code, or None for anything else."""
    if len(text) > MAX_TYPED_LENGTH or not text.isascii():
        return None
    typed = text.lower().translate(LOOK_ALIKES).replace("-", "").replace(" ", "")
    return typed if RECOVERY_CODE_SHAPE.fullmatch(typed) else None


def check_totp(text: str) -> str:
    """The secret in its stored form: base32 in capitals, without spaces and padding."""
    secret = text.replace(" ", "").rstrip("=").upper()
    try:
        raw = base64.b32decode(secret + "=" * (-len(secret) % 8))
    except (binascii.Error, ValueError):
        raise BadAccount("must be base32: the letters A to Z and the digits 2 to 7") from None
    if len(raw) not in TOTP_BYTES:
        raise BadAccount(f"must have {TOTP_BYTES[0]} to {TOTP_BYTES[-1]} bytes, not {len(raw)}")
    return secret


class RecoveryCodes:
    def __init__(self, *, store: SecondFactorStore, key: bytes, notifier: AccountNotifier, clock: Clock) -> None:
        """`key` is the installation's: a stolen database alone must not allow guessing 50-bit codes."""
        self._store = store
        self._key = key
        self._notifier = notifier
        self._clock = clock

    def generate(self, user: User) -> NewRecoveryCodes:
        shown = tuple(new_recovery_code() for _ in range(CODE_COUNT))
        return NewRecoveryCodes(
            codes=shown, digests=tuple(self._digest(user, code.replace("-", "")) for code in shown)
        )

    async def renew(self, user: User, *, origin: AuditOrigin, device: str = "") -> tuple[str, ...]:
        """Replace the whole set and return the new codes, which are shown once. Raises FactorMissing."""
        codes = self.generate(user)
        entry = self._notifier.record(AuditEvent.RECOVERY_CODES_MADE, user, origin)
        mails = self._notifier.mails(MailTemplate.FACTOR_ADDED, user, origin, device, factor=Factor.RECOVERY.value)
        await self._store.replace_recovery_codes(user.user_id, codes.digests, entry, mails)
        return codes.codes

    async def spend(self, user: User, code: str, *, origin: AuditOrigin, device: str = "") -> bool:
        """Use a code; True for exactly one caller."""
        typed = normalize_recovery_code(code)
        if typed is None:
            return False
        left = max(0, (await self._store.factor_overview(user.user_id)).recovery_left - 1)
        entry = self._notifier.record(AuditEvent.RECOVERY_CODE_USED, user, origin, left=left)
        mails = self._notifier.mails(MailTemplate.RECOVERY_CODE_USED, user, origin, device, left=str(left))
        return await self._store.use_recovery_code(
            user.user_id, self._digest(user, typed), entry, mails, self._clock.now()
        )

    def _digest(self, user: User, typed: str) -> bytes:
        return hmac_sha256(self._key, f"recovery:{user.user_id}:{typed}".encode())


# Codes by email: the weakest factor, which does not qualify for publishing projects (R1).


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
        kept = await self._store.enable_email_codes(user.user_id, codes.digests, entry, mails)
        return codes.codes if kept else ()

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


# Codes of an authenticator app: RFC 6238 with SHA-1, six digits, thirty seconds, as every app supports.


TOTP_SECRET_BYTES: Final = 20  # RFC 4226 §4 recommends 160 bits
ENROLLMENT_LIFETIME: Final = 1_800  # seconds in which the first code must confirm a new secret
TOTP_CODE_SHAPE: Final = re.compile(r"[0-9]{6}")  # not \d, which matches digits of other scripts


def is_six_digit_code(text: str) -> bool:
    return TOTP_CODE_SHAPE.fullmatch(text) is not None


def matching_step(secret: str, code: str, now: int) -> int | None:
    """Return the time step of the code: the current one, or the previous one for slow typing or a slow clock.

    The next step is refused (checklist LG-11).
    """
    current = now // TOTP_STEP_SECONDS
    app = pyotp.TOTP(secret)
    # Not `app.at`, which uses local time and is an hour off when that changes.
    return next((step for step in (current, current - 1) if constant_time_equal(code, app.generate_otp(step))), None)


class Totp(Struct, kw_only=True, eq=False):
    """`issuer` returns the name the app shows above the code."""

    store: SecondFactorStore
    masters: MasterKeys
    recovery: RecoveryCodes
    notifier: AccountNotifier
    clock: Clock
    issuer: Callable[[], str]

    async def begin_enrollment(self, user: User) -> TotpEnrollment:
        """Create a secret that takes effect when its first code confirms it. Raises EmailNotVerified."""
        if not user.may_add_factors:
            raise EmailNotVerified
        secret = base64.b32encode(secrets.token_bytes(TOTP_SECRET_BYTES)).decode()
        sealed = self.masters.seal(secret.encode(), purpose=totp_sealing_purpose(user.user_id))
        now = self.clock.now()
        await self.store.put_enrollment(user.user_id, sealed, now=now, expires_at=now + ENROLLMENT_LIFETIME)
        return self._enrollment(user, secret)

    async def pending_enrollment(self, user: User) -> TotpEnrollment | None:
        """Return the unconfirmed secret, to be shown again after a wrong code."""
        sealed = await self.store.find_enrollment(user.user_id, self.clock.now())
        secret = None if sealed is None else self._open(user, sealed)
        return None if secret is None else self._enrollment(user, secret)

    async def confirm_enrollment(
        self, user: User, code: str, *, origin: AuditOrigin, device: str = ""
    ) -> tuple[str, ...]:
        """Make the pending secret the account's and return recovery codes to show, if it had none left.

        Raises EnrollmentGone, or SecondFactorWrong, after which it can be tried again.
        """
        now = self.clock.now()
        sealed = await self.store.find_enrollment(user.user_id, now)
        if sealed is None:
            raise EnrollmentGone
        step = self._step(user, sealed, code)
        if step is None:
            raise SecondFactorWrong("the new secret was not confirmed")
        codes = self.recovery.generate(user)
        entry, mails = self.notifier.factor_added(Factor.TOTP, user, origin, device)
        kept = await self.store.confirm_totp(
            user.user_id, sealed, step, codes.digests, entry=entry, mails=mails, now=now
        )
        return codes.codes if kept else ()

    async def remove(self, user: User, *, origin: AuditOrigin, device: str = "", reason: str = "") -> None:
        entry, mails = self.notifier.factor_removed(Factor.TOTP, user, origin, device, reason)
        await self.store.remove_totp(user.user_id, entry, mails)

    async def spend(self, user: User, code: str) -> bool:
        """Use a code; True for the first caller with this code, and False for it and earlier ones from then on."""
        if user.sealed_totp is None:
            return False
        step = self._step(user, user.sealed_totp, code)
        return step is not None and await self.store.spend_totp_step(user.user_id, user.sealed_totp, step)

    def _step(self, user: User, sealed: bytes, code: str) -> int | None:
        secret = self._open(user, sealed) if is_six_digit_code(code) else None
        return None if secret is None else matching_step(secret, code, self.clock.now())

    def _open(self, user: User, sealed: bytes) -> str | None:
        """Return the secret; None for a damaged one, which no code matches."""
        secret = self.masters.try_open(sealed, purpose=totp_sealing_purpose(user.user_id))
        return None if secret is None else secret.decode()

    def _enrollment(self, user: User, secret: str) -> TotpEnrollment:
        uri = pyotp.TOTP(secret).provisioning_uri(name=user.login or user.nick, issuer_name=self.issuer())
        return TotpEnrollment(secret=secret, uri=uri)
