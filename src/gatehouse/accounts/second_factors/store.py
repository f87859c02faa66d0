"""What second factors need kept.

Whatever changes the factors of an account also raises the account's version, so that a save of the whole
account which was read before does not undo it.
"""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.accounts.second_factors.model import FactorOverview, Passkey
from gatehouse.audit.model import AuditRecord
from gatehouse.mail.model import OutboxMail


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
