"""What mail needs kept, and kept shut."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.mail.model import ClaimedMail, OutboxMail, OutboxStatus


class MessageSealer(Protocol):
    """What closes and opens letters: the master keys."""

    def seal(self, plain: bytes, *, purpose: str) -> bytes:
        """Return the text so that only a holder of the master key can read it."""

    def try_open(self, sealed: bytes, *, purpose: str) -> bytes | None:
        """Return what was sealed for that purpose; None, with an alarm, for anything else."""


class OutboxStore(Protocol):
    async def queue_mails(self, mails: Sequence[OutboxMail], user_id: str) -> None:
        """Keep the mails, due at once, and wake every node's postman; they go with that account when it is erased.

        A verb that causes mail does this in its own transaction: no act commits without its mail, and no mail
        leaves without its act.
        """

    async def claim_due(self, now: int, lease: int, limit: int) -> Sequence[ClaimedMail]:
        """Take up to `limit` mails that are due, the longest due first, and hold them until `now + lease`.

        Of any number of nodes one gets a mail; it is due again only when the lease has ended or `failed` says so.
        """

    async def delete_sent(self, mail_id: str) -> None:
        """Forget the mail: a server has taken it. Harmless for one that is gone."""

    async def record_failure(self, claim: ClaimedMail, trouble: str, next_try_at: int) -> None:
        """Keep what the try ended with, and when the mail is due again; never, with 0.

        Without effect once the lease has ended and somebody else holds the mail.
        """

    async def outbox_status(self) -> OutboxStatus:
        """Count what is in the outbox."""
