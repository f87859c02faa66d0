"""Second factors of an account (R1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gatehouse.accounts.model import User
from gatehouse.keys.base64url import encode_base64url

TOTP_STEP_SECONDS: Final = 30  # of TOTP; RFC 6238 §5.2
MAX_EMAIL_CODE_TRIES: Final = 5  # wrong tries at one e-mailed code; the last of them ends it
MAX_PASSKEYS: Final = 20  # of one account


class Factor(StrEnum):
    """In the order in which a person is asked for them when none was used yet."""

    TOTP = "totp"
    PASSKEY = "passkey"
    EMAIL = "email"
    RECOVERY = "recovery"  # never a factor of its own: it stands in for a lost one


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorOverview:
    """What is kept of an account's factors beside the account itself; 0 for never and none."""

    totp_since: int = 0
    totp_used_at: int = 0
    passkey_used_at: int = 0
    recovery_left: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnabledFactors:
    methods: tuple[Factor, ...]  # enabled; the one last used first
    totp_since: int
    recovery_left: int

    @property
    def accepted_factors(self) -> tuple[Factor, ...]:
        """Everything that can answer the question for a second factor."""
        return (*self.methods, Factor.RECOVERY) if self.recovery_left else self.methods


def enabled_factors(user: User) -> tuple[Factor, ...]:
    facts = {
        Factor.TOTP: user.sealed_totp is not None,
        Factor.PASSKEY: user.passkeys > 0,
        Factor.EMAIL: user.email_code,
    }
    return tuple(factor for factor, holds in facts.items() if holds)


def factors_by_last_use(user: User, overview: FactorOverview) -> EnabledFactors:
    used_at: Mapping[Factor, int] = {
        Factor.TOTP: overview.totp_used_at,
        Factor.PASSKEY: overview.passkey_used_at,
    }
    return EnabledFactors(
        methods=tuple(sorted(enabled_factors(user), key=lambda factor: -used_at.get(factor, 0))),
        totp_since=overview.totp_since,
        recovery_left=overview.recovery_left,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TotpEnrollment:
    """A TOTP secret that its owner has yet to confirm."""

    secret: str = field(repr=False)  # base32
    uri: str = field(repr=False)  # otpauth://…, for a QR code


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecoveryCodes:
    """A set of recovery codes: what its owner is shown once, and what is kept."""

    codes: tuple[str, ...] = field(repr=False)
    digests: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkey:
    credential_id: bytes
    user_id: str
    public_key: bytes = field(repr=False)  # COSE
    sign_count: int  # 0 for an authenticator that does not count
    name: str
    transports: tuple[str, ...] = ()
    created_at: int
    used_at: int = 0

    @property
    def passkey_id(self) -> str:
        """How pages name it."""
        return encode_base64url(self.credential_id).decode()


def totp_sealing_purpose(user_id: str) -> str:
    """What the sealed secret of an authenticator app is bound to."""
    return f"totp:{user_id}"
