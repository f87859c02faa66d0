"""Codes of an authenticator app: RFC 6238 with SHA-1, six digits, thirty seconds, as every app has it."""

import base64
import re
import secrets
from typing import Final

import pyotp

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.errors import EmailNotVerified, EnrollmentGone, SecondFactorWrong
from gatehouse.accounts.second_factors.model import TOTP_STEP_SECONDS, Factor, TotpEnrollment, totp_sealing_purpose
from gatehouse.accounts.second_factors.recovery import RecoveryCodes
from gatehouse.accounts.second_factors.store import SecondFactorStore
from gatehouse.accounts.second_factors.telling import AccountNotifier
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import constant_time_equal
from gatehouse.keys.sealing import MasterKeys

TOTP_SECRET_BYTES: Final = 20  # RFC 4226 §4 recommends 160 bits
ENROLLMENT_LIFETIME: Final = 1_800  # seconds a new secret waits for its first code
TOTP_CODE_SHAPE: Final = re.compile(r"[0-9]{6}")  # not \d, which knows a few hundred more digits


def is_six_digit_code(text: str) -> bool:
    return TOTP_CODE_SHAPE.fullmatch(text) is not None


def matching_step(secret: str, code: str, now: int) -> int | None:
    """The time step the code belongs to: this one, or the one before for a slow hand or clock.

    The next one is refused (checklist LG-11): a clock that runs ahead is a clock to be set.
    """
    current = now // TOTP_STEP_SECONDS
    app = pyotp.TOTP(secret)
    # Not `app.at`, which goes through local time and is an hour off when that changes.
    return next((step for step in (current, current - 1) if constant_time_equal(code, app.generate_otp(step))), None)


class Totp:
    def __init__(
        self,
        *,
        store: SecondFactorStore,
        masters: MasterKeys,
        recovery: RecoveryCodes,
        notifier: AccountNotifier,
        clock: Clock,
        issuer: str,
    ) -> None:
        """`issuer` is what the app shows the code under."""
        self._store = store
        self._masters = masters
        self._recovery = recovery
        self._notifier = notifier
        self._clock = clock
        self._issuer = issuer

    async def begin_enrollment(self, user: User) -> TotpEnrollment:
        """Make a secret that counts for nothing until its first code confirms it. Raises EmailNotVerified."""
        if not user.may_add_factors:
            raise EmailNotVerified
        secret = base64.b32encode(secrets.token_bytes(TOTP_SECRET_BYTES)).decode()
        sealed = self._masters.seal(secret.encode(), purpose=totp_sealing_purpose(user.user_id))
        now = self._clock.now()
        await self._store.put_enrollment(user.user_id, sealed, now=now, expires_at=now + ENROLLMENT_LIFETIME)
        return self._enrollment(user, secret)

    async def pending_enrollment(self, user: User) -> TotpEnrollment | None:
        """The secret that waits to be confirmed, to be shown again after a wrong code."""
        sealed = await self._store.find_enrollment(user.user_id, self._clock.now())
        secret = None if sealed is None else self._open(user, sealed)
        return None if secret is None else self._enrollment(user, secret)

    async def confirm_enrollment(
        self, user: User, code: str, *, origin: AuditOrigin, device: str = ""
    ) -> tuple[str, ...]:
        """Make the pending secret the account's; returns recovery codes to show, if it had none left.

        Raises EnrolmentGone, or SecondFactorWrong, after which it can be tried again.
        """
        now = self._clock.now()
        sealed = await self._store.find_enrollment(user.user_id, now)
        if sealed is None:
            raise EnrollmentGone
        step = self._step(user, sealed, code)
        if step is None:
            raise SecondFactorWrong("the new secret was not confirmed")
        codes = self._recovery.generate(user)
        entry, mails = self._notifier.factor_added(Factor.TOTP, user, origin, device)
        kept = await self._store.confirm_totp(
            user.user_id, sealed, step, codes.digests, entry=entry, mails=mails, now=now
        )
        return codes.codes if kept else ()

    async def remove(self, user: User, *, origin: AuditOrigin, device: str = "", reason: str = "") -> None:
        entry, mails = self._notifier.factor_removed(Factor.TOTP, user, origin, device, reason)
        await self._store.remove_totp(user.user_id, entry, mails)

    async def spend(self, user: User, code: str) -> bool:
        """True for the one caller who is first with this code or a later one."""
        if user.sealed_totp is None:
            return False
        step = self._step(user, user.sealed_totp, code)
        return step is not None and await self._store.spend_totp_step(user.user_id, user.sealed_totp, step)

    def _step(self, user: User, sealed: bytes, code: str) -> int | None:
        secret = self._open(user, sealed) if is_six_digit_code(code) else None
        return None if secret is None else matching_step(secret, code, self._clock.now())

    def _open(self, user: User, sealed: bytes) -> str | None:
        """None for a damaged one, which no code fits."""
        secret = self._masters.try_open(sealed, purpose=totp_sealing_purpose(user.user_id))
        return None if secret is None else secret.decode()

    def _enrollment(self, user: User, secret: str) -> TotpEnrollment:
        uri = pyotp.TOTP(secret).provisioning_uri(name=user.login or user.nick, issuer_name=self._issuer)
        return TotpEnrollment(secret=secret, uri=uri)
