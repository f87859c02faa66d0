"""Recovery codes, and the check of a typed code (S-18)."""

import base64
import binascii
import re
import secrets
from typing import Final

from gatehouse.accounts.errors import BadAccount
from gatehouse.accounts.model import User
from gatehouse.accounts.second_factors.model import Factor, NewRecoveryCodes, SecondFactorStore
from gatehouse.accounts.second_factors.notifications import AccountNotifier
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import hmac_sha256
from gatehouse.mail.model import MailTemplate

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
