"""Codes of an authenticator app: RFC 6238 with SHA-1, six digits, thirty seconds, as every app supports."""

import base64
import re
import secrets
from collections.abc import Callable
from typing import Final

import pyotp
from msgspec import Struct

from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.codes import RecoveryCodes
from gatehouse.accounts.second_factors.model import (
    TOTP_STEP_SECONDS,
    EmailNotVerified,
    EnrollmentGone,
    Factor,
    SecondFactorStore,
    SecondFactorWrong,
    TotpEnrollment,
    totp_sealing_purpose,
)
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import first_equal
from gatehouse.keys.sealing import MasterKeys

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
    ago = first_equal((code, app.generate_otp(step)) for step in (current, current - 1))
    return None if ago is None else current - ago


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
        stores_codes = await self.store.confirm_totp(
            user.user_id, sealed, step, codes.digests, entry=entry, mails=mails, now=now
        )
        return codes.codes if stores_codes else ()

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
