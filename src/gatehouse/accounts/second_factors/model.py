"""Second factors of an account, their errors and stores (R1)."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from gatehouse.accounts.model import EnabledMethods, User
from gatehouse.audit.model import AuditRecord
from gatehouse.fields.secrets import SecretBytes, SecretRecord, SecretText
from gatehouse.kernel.errors import BadInput, Conflict, NotFound, Refused
from gatehouse.keys.encoding import encode_base64url
from gatehouse.mail.model import OutboxMail

TOTP_STEP_SECONDS: Final = 30  # RFC 6238 §5.2
MAX_EMAIL_CODE_TRIES: Final = 5  # wrong tries at one emailed code; the last one ends it
MAX_PASSKEYS: Final = 20  # per account


class Factor(StrEnum):
    """The kinds of second factors, in the order they are offered when none was used yet."""

    TOTP = "totp"
    PASSKEY = "passkey"
    EMAIL = "email"
    PHONE = "phone"
    RECOVERY = "recovery"  # not a factor of its own: it replaces a lost one


class FactorOverview(Struct, frozen=True, kw_only=True):
    """What is stored of an account's factors beside the account itself; 0 means never or none."""

    totp_since: int = 0
    totp_used_at: int = 0
    passkey_used_at: int = 0
    recovery_left: int = 0


class EnabledFactors(Struct, frozen=True, kw_only=True):
    methods: tuple[Factor, ...]  # enabled ones, last used first
    totp_since: int
    recovery_left: int

    @property
    def accepted_factors(self) -> tuple[Factor, ...]:
        """Every factor that can answer the request for a second factor."""
        return (*self.methods, Factor.RECOVERY) if self.recovery_left else self.methods


def enabled_factors(user: User) -> tuple[Factor, ...]:
    """Return the factors of which a sign-in needs one, also a phone that is closed."""
    facts = {
        Factor.TOTP: user.sealed_totp is not None,
        Factor.PASSKEY: user.passkeys > 0,
        Factor.EMAIL: user.email_code,
        Factor.PHONE: user.phone_code,
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


class TotpEnrollment(SecretRecord, frozen=True, kw_only=True):
    """A TOTP secret that its owner has not confirmed yet."""

    secret: SecretText  # base32
    uri: SecretText  # otpauth://…, for a QR code


class NewRecoveryCodes(SecretRecord, frozen=True, kw_only=True):
    """A set of recovery codes: the codes shown once, and the stored digests."""

    codes: tuple[SecretText, ...]
    digests: tuple[SecretBytes, ...]


class Passkey(SecretRecord, frozen=True, kw_only=True):
    credential_id: bytes
    user_id: str
    public_key: SecretBytes  # COSE
    sign_count: int  # 0 for an authenticator without a counter
    name: str
    transports: tuple[str, ...] = ()
    created_at: int
    used_at: int = 0

    @property
    def passkey_id(self) -> str:
        """The ID on pages."""
        return encode_base64url(self.credential_id).decode()


def totp_sealing_purpose(user_id: str) -> str:
    """Return what the sealed secret of an authenticator app is bound to."""
    return f"totp:{user_id}"


# Errors of second factors.


class SecondFactorWrong(Refused):
    """One error for codes that are wrong, used, too old or of another user (checklist LG-11)."""

    public = "This code is wrong, expired or already used."


class PasskeyRefused(Refused):
    """One error for every invalid passkey response; the detail is for the log."""

    public = "This passkey could not be verified."


class PasskeyUnknown(PasskeyRefused):
    """No account has this passkey: it was removed here, and the person's device still offers it."""

    def __init__(self, credential_id: bytes) -> None:
        super().__init__("unknown or removed")
        self.credential_id = credential_id


class FactorMissing(NotFound):
    public = "The account does not have this second factor."


class FactorExists(Conflict):
    public = "The account already has this second factor."


class SameMailbox(Conflict):
    """The person signs in by email only: a code by email would prove the same mailbox again."""

    public = "You sign in by email, so a code by email is not a second factor. Use an authenticator app or a passkey."


class EnrollmentGone(Conflict):
    public = "This setup has expired. Start again."


class EmailNotVerified(Conflict):
    public = "Verify the email address first."


class PasskeyTaken(Conflict):
    public = "This passkey is already registered."


class TooManyPasskeys(Conflict):
    public = f"An account can have at most {MAX_PASSKEYS} passkeys."


class BadPasskeyName(BadInput):
    """The detail says what a name must be, for the person who entered it."""


# Every change of an account's factors also raises the account's version, so that a save of an account read before
# does not undo it.


class SecondFactorStore(Protocol):
    async def factor_overview(self, user_id: str) -> FactorOverview:
        """Return what is stored of the account's factors; an unknown account has none."""

    async def put_enrollment(self, user_id: str, sealed: bytes, *, now: int, expires_at: int) -> None:
        """Store an unconfirmed TOTP secret, replacing the account's earlier one."""

    async def find_enrollment(self, user_id: str, now: int) -> bytes | None:
        """Return the sealed, unconfirmed secret."""

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
        """Take the enrollment if it still has this secret, and make it the account's TOTP factor, with `step` used.

        Stores the recovery codes if the account has none left, and returns whether it did. Of two callers exactly
        one succeeds. Raises EnrollmentGone.
        """

    async def remove_totp(self, user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail]) -> None:
        """Remove the factor, and with the last factor the recovery codes. Raises FactorMissing."""

    async def spend_totp_step(self, user_id: str, sealed: bytes, step: int) -> bool:
        """Accept a step of this secret once: True for one caller, and False for it and earlier steps from then on."""

    async def enable_email_codes(
        self, user_id: str, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> bool:
        """Enable codes by email, with recovery codes as in `confirm_totp`. Raises FactorExists."""

    async def disable_email_codes(self, user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail]) -> None:
        """Remove the factor, any pending code, and with the last factor the recovery codes. Raises FactorMissing."""

    async def put_email_code(
        self, user_id: str, digest: bytes, mails: Sequence[OutboxMail], *, now: int, expires_at: int
    ) -> None:
        """Store a code, replacing the previous one."""

    async def try_email_code(self, user_id: str, digest: bytes, now: int) -> bool:
        """Use the code if it matches, otherwise count a wrong try; MAX_EMAIL_CODE_TRIES of them end the code.

        Of any number of callers with the right code exactly one gets True, and every wrong try counts.
        """

    async def replace_recovery_codes(
        self, user_id: str, codes: Sequence[bytes], entry: AuditRecord, mails: Sequence[OutboxMail]
    ) -> None:
        """Replace the whole set of recovery codes. Raises FactorMissing when the account has no factor."""

    async def use_recovery_code(
        self, user_id: str, digest: bytes, entry: AuditRecord, mails: Sequence[OutboxMail], now: int
    ) -> bool:
        """Use a recovery code; True for one caller. Otherwise nothing is recorded or mailed."""

    async def remove_all_factors(
        self, user_id: str, entry: AuditRecord, mails: Sequence[OutboxMail], now: int
    ) -> None:
        """Remove every factor and recovery code, and end every session and token (checklist LG-20).

        Raises UserNotFound.
        """


class PasskeyStore(Protocol):
    async def put_challenge(self, kind: str, digest: bytes, *, now: int, expires_at: int) -> None:
        """Store a challenge that can be answered once."""

    async def take_challenge(self, kind: str, digest: bytes, now: int) -> bool:
        """Use the challenge; True for one caller."""

    async def find_passkey(self, credential_id: bytes) -> Passkey | None:
        """Return the passkey with that ID, of any account."""

    async def passkeys_of_user(self, user_id: str) -> Sequence[Passkey]:
        """Return the account's passkeys, the oldest first."""

    async def add_passkey(
        self,
        passkey: Passkey,
        codes: Sequence[bytes],
        entry: AuditRecord,
        mails: Sequence[OutboxMail],
        *,
        host: str,
    ) -> bool:
        """Store the passkey, and the recovery codes if the account has none left; return whether it stored the codes.

        Raises PasskeyTaken for an ID that any account has, TooManyPasskeys, and PasskeyRefused when there are
        passkeys of another host, also under races.
        """

    async def use_passkey(self, credential_id: bytes, sign_count: int, suspicion: AuditRecord, now: int) -> bool:
        """Record a use if the counter increased, or if neither side counts.

        False otherwise, and then `suspicion` is stored: a counter that goes back means that the passkey was cloned.
        """

    async def rename_passkey(self, user_id: str, credential_id: bytes, name: str, entry: AuditRecord) -> None:
        """Rename the passkey. Raises FactorMissing when it is not the account's."""

    async def remove_passkey(
        self,
        user_id: str,
        credential_id: bytes,
        entry: AuditRecord,
        mails: Sequence[OutboxMail],
        *,
        methods: EnabledMethods,
    ) -> None:
        """Remove the account's passkey, and with the last factor the recovery codes.

        `methods`: that they can sign in with now. Raises FactorMissing and LastSignInMethod.
        """
