"""The outbox worker: claims due emails, delivers them, stores the outcome.

Emails are held by lease, so that no two nodes deliver one at the same time. A node that dies after a server
accepted an email and before that was stored delivers it again, with the same Message-ID: twice is better than
never.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import structlog

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.mail.delivery import DeliverySession, MailTransport
from gatehouse.mail.model import (
    Channel,
    ClaimedMail,
    Message,
    OutboxMail,
    OutboxStore,
    RecipientRefused,
    ServerUnusable,
    Undelivered,
    mail_sealing_purpose,
)

log = structlog.get_logger(__name__)

BATCH_SIZE: Final = 10  # emails per connection
FIRST_DELAY: Final = 60  # seconds
MAX_DELAY: Final = 3_600
GIVE_UP_AFTER: Final = 3 * 86_400  # seconds after which an email is useless
FIRST_TEXT_DELAY: Final = 10
TEXT_GIVE_UP_AFTER: Final = 240  # a code lives five minutes
NO_RETRY: Final = 0


class OutboxWorker:
    def __init__(
        self,
        *,
        store: OutboxStore,
        find_transport: Callable[[], MailTransport | None],
        sealer: SecretSealer,
        clock: Clock,
        channel: Channel = Channel.EMAIL,
    ) -> None:
        """Without a transport everything stays in the outbox; it is looked up before each batch."""
        self._channel = channel
        self._first_delay = FIRST_DELAY if channel is Channel.EMAIL else FIRST_TEXT_DELAY
        self._give_up_after = GIVE_UP_AFTER if channel is Channel.EMAIL else TEXT_GIVE_UP_AFTER
        self._store = store
        self._find_transport = find_transport
        self._sealer = sealer
        self._clock = clock
        self.outcomes: Counter[str] = Counter()  # of deliveries, for the metrics of this process

    async def run_once(self) -> None:
        """Deliver everything that is due; return when nothing is left or the server is not available."""
        transport = self._find_transport()
        if transport is None:
            return
        # The lease outlasts the slowest possible batch, so that no other node claims an email being sent.
        lease = round(transport.timeout * (BATCH_SIZE + 2)) + FIRST_DELAY
        while claims := await self._store.claim_due(self._clock.now(), lease, BATCH_SIZE, self._channel):
            if not await self._deliver_batch(transport, claims):
                return

    async def deliver_now(self, mail: OutboxMail) -> None:
        """Deliver an email directly, while the caller waits for the result. Raises Undelivered."""
        transport = self._find_transport()
        if transport is None:
            raise ServerUnusable(
                "no sender is configured: set phone.sender"
                if self._channel is Channel.TEXT
                else "no mail server is configured: set mail.host and mail.from_address"
            )
        async with transport.open_session() as session:
            await session.deliver(mail, self._open(mail))

    async def _deliver_batch(self, transport: MailTransport, claims: Sequence[ClaimedMail]) -> bool:
        """Deliver the claims over one connection; False when the connection failed."""
        left = list(claims)
        try:
            async with transport.open_session() as session:
                while left:
                    await self._deliver(session, left.pop(0))
        except ServerUnusable as trouble:
            log.warning(
                "message server not available", channel=self._channel.value, reason=trouble.detail, count=len(left)
            )
            # The email at which the connection broke waits longer than the rest of its batch: if it is the cause,
            # the others go first next time. Without any connection, all wait alike.
            alike = len(left) == len(claims)
            for claim in left:
                await self._schedule_retry(claim, trouble, self._retry_delay(claim.tries if alike else 1))
            return False
        return True

    async def _deliver(self, session: DeliverySession, claim: ClaimedMail) -> None:
        try:
            self._refuse_stale(claim.mail)
            await session.deliver(claim.mail, self._open(claim.mail))
        except RecipientRefused as refused:
            await self._mark_failed(claim, refused)
        except Undelivered as trouble:
            await self._schedule_retry(claim, trouble, self._retry_delay(claim.tries))
            if isinstance(trouble, ServerUnusable):
                raise
        else:
            await self._store.delete_sent(claim.mail.mail_id)
            self.outcomes["sent"] += 1

    def _refuse_stale(self, mail: OutboxMail) -> None:
        """Raise Undelivered for old emails, such as last month's links when a mail server is configured late."""
        if self._clock.now() > mail.created_at + self._give_up_after:
            raise Undelivered("too old")

    def _open(self, mail: OutboxMail) -> Message:
        plain = self._sealer.try_open(mail.sealed, purpose=mail_sealing_purpose(mail.mail_id))
        if plain is None:  # tried again: a previous master key may still be configured
            raise Undelivered("A stored secret is damaged.")
        try:
            return msgspec.json.decode(plain, type=Message)
        except msgspec.MsgspecError as error:
            raise Undelivered("written by an incompatible version") from error

    async def _schedule_retry(self, claim: ClaimedMail, trouble: Undelivered, delay: int) -> None:
        next_try_at = self._clock.now() + delay
        if next_try_at > claim.mail.created_at + self._give_up_after:
            await self._mark_failed(claim, trouble)
        else:
            await self._store.record_failure(claim, trouble.detail, next_try_at)
            self.outcomes["retried"] += 1

    def _retry_delay(self, tries: int) -> int:
        return retry_delay(tries, self._first_delay)

    async def _mark_failed(self, claim: ClaimedMail, trouble: Undelivered) -> None:
        log.warning(
            "message failed",
            channel=self._channel.value,
            kind=claim.mail.template,
            attempt=claim.tries,
            reason=trouble.detail,
        )
        await self._store.record_failure(claim, trouble.detail, NO_RETRY)
        self.outcomes["failed"] += 1


def retry_delay(tries: int, first_delay: int = FIRST_DELAY) -> int:
    """Seconds until the next try: a minute for an email, twice as long each time, an hour at most."""
    return int(min(first_delay * 2 ** min(tries - 1, 10), MAX_DELAY))
