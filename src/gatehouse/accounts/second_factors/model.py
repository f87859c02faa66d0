"""Second factors of an account (R1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused
from gatehouse.keys.encoding import encode_base64url
from gatehouse.mail.model import OutboxMail

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


# What can go wrong with second factors.


class SecondFactorWrong(Refused):
    """Wrong, spent, too old, another user's: one error for all (checklist LG-11)."""

    public = "This code is wrong, expired or already used."


class PasskeyRefused(Refused):
    """One error for whatever is wrong with it; the detail is for the log."""

    public = "This passkey could not be verified."


class FactorMissing(NotFound):
    public = "The account does not have this second factor."


class FactorExists(Conflict):
    public = "The account already has this second factor."


class EnrollmentGone(Conflict):
    public = "This setup has expired. Start again."


class EmailNotVerified(Conflict):
    public = "Verify the email address first."


class PasskeyTaken(Conflict):
    public = "This passkey is already registered."


class TooManyPasskeys(Conflict):
    public = f"An account can have at most {MAX_PASSKEYS} passkeys."


class BadPasskeyName(BadInput):
    """The detail says what a name must be, for its writer."""


# What second factors need kept.
#
# Whatever changes the factors of an account also raises the account's version, so that a save of the whole
# account which was read before does not undo it.


class SecondFactorStore(Protocol):
    async def factor_overview(self, user_id: str) -> FactorOverview:
        """What is kept of the account's factors; of an unknown account, nothing."""

    async def put_enrollment(self, user_id: str, sealed: bytes, *, now: int, expires_at: int) -> None:
        """Keep a TOTP secret until it is confirmed; the account's earlier one is gone with it."""

    async def find_enrollment(self, user_id: str, now: int) -> bytes | None:
        """The sealed secret that waits to be confirmed."""

    async def confirm_totp(
        self,
        user_id: str,
        sealed: bytes,
        step: int,
        codes: Sequence[bytes],
        *,
        entry: AuditRecord,
        mails: Sequence[OutboxMail],
        now: int,
    ) -> bool:
        """Take the enrolment if it still is this secret, and make it the account's TOTP factor, `step` spent.

        Keeps the recovery codes if the account has none left, and says whether it did. Of two callers
        exactly one succeeds. Raises EnrolmentGone.
        """

    async def remove_totp(self, user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail]) -> None:
        """Remove the factor; with the last one the recovery codes go. Raises FactorMissing."""

    async def spend_totp_step(self, user_id: str, sealed: bytes, step: int) -> bool:
        """Accept a step of this secret once: True for one caller, and never again for it or an earlier one."""

    async def enable_email_codes(
        self, user_id: str, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> bool:
        """Make codes by e-mail a factor; with the recovery codes as `confirm_totp`. Raises FactorExists."""

    async def disable_email_codes(self, user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail]) -> None:
        """Remove the factor and any code under way; with the last one the recovery codes go. Raises FactorMissing."""

    async def put_email_code(
        self, user_id: str, digest: bytes, mails: Sequence[OutboxMail], *, now: int, expires_at: int
    ) -> None:
        """Keep a code that can be tried; the one before is gone with it."""

    async def try_email_code(self, user_id: str, digest: bytes, now: int) -> bool:
        """Take the code if it is this one, else count a wrong try; after TRIES_MOST of them it is dead.

        Of any number of callers with the right code exactly one gets True, and no try goes uncounted.
        """

    async def replace_recovery_codes(
        self, user_id: str, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> None:
        """Replace the whole set of recovery codes. Raises FactorMissing when there is nothing to recover."""

    async def use_recovery_code(
        self, user_id: str, digest: bytes, entry: AuditRecord, mails: Sequence[OutboxMail], now: int
    ) -> bool:
        """Spend a recovery code; True for one caller. Nothing is recorded or mailed otherwise."""

    async def remove_all_factors(
        self, user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail], now: int
    ) -> None:
        """Remove every factor and recovery code, and end every session and token (checklist LG-20).

        Raises UserNotFound.
        """


class PasskeyStore(Protocol):
    async def put_challenge(self, kind: str, digest: bytes, *, now: int, expires_at: int) -> None:
        """Keep a challenge that can be answered once."""

    async def take_challenge(self, kind: str, digest: bytes, now: int) -> bool:
        """Spend it; True for one caller."""

    async def find_passkey(self, credential_id: bytes) -> Passkey | None:
        """The passkey of that id, whoever has it."""

    async def passkeys_of_user(self, user_id: str) -> Sequence[Passkey]:
        """The account's, the oldest first."""

    async def add_passkey(
        self, passkey: Passkey, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> bool:
        """Keep it, and the recovery codes if the account has none left; says whether it kept these.

        Raises PasskeyTaken for an id that any account has, and TooManyPasskeys, also under races.
        """

    async def use_passkey(self, credential_id: bytes, sign_count: int, suspicion: AuditRecord, now: int) -> bool:
        """Note a use, if the counter went up or neither side counts.

        False otherwise, and then `suspicion` is kept: a counter that goes back says that there are two of it.
        """

    async def rename_passkey(self, user_id: str, credential_id: bytes, name: str, entry: AuditRecord) -> None:
        """Raises FactorMissing when it is not the account's."""

    async def remove_passkey(
        self, user_id: str, credential_id: bytes, entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> None:
        """Remove it; with the last factor the recovery codes go. Raises FactorMissing if it is not the account's."""
