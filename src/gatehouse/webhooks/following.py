"""Turns what was sealed into deliveries: in the order of the audit log, each event once for each webhook.

How far a webhook has read is kept with its deliveries in one commit. So nothing that was committed is lost, however
often a node dies, and of two nodes that read the same records one writes.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id
from gatehouse.webhooks.messages import event_body
from gatehouse.webhooks.model import RETRY_PERIOD, Delivery, Webhook
from gatehouse.webhooks.store import WebhookStore
from gatehouse.webhooks.topics import TOPIC_BY_EVENT

RECORD_BATCH: Final = 200  # records read at once


class SealedLog(Protocol):
    """The audit log, as far as it is sealed."""

    async def records_from(self, place: int, limit: int) -> Sequence[AuditRecord]:
        """Sealed records in chain order, from that place on."""


class AuditLogConsumer:
    def __init__(self, *, store: WebhookStore, log: SealedLog, clock: Clock) -> None:
        self._store = store
        self._log = log
        self._clock = clock

    async def catch_up(self) -> None:
        """Read until every webhook has read all that is sealed, or has as much waiting as it may."""
        while await self._step():
            pass

    async def _step(self) -> bool:
        newest, behind = await self._store.webhooks_behind()
        read: dict[int, Sequence[AuditRecord]] = {}  # most have read equally far
        for webhook in behind:
            if webhook.place not in read:
                read[webhook.place] = await self._log.records_from(webhook.place + 1, RECORD_BATCH)
            records = read[webhook.place]
            # None at all: what it had not read yet, retention has taken.
            place = (records[-1].place or newest) if records else newest
            await self._store.enqueue_and_advance(webhook, place, list(self._deliveries(webhook, records)))
        return bool(behind)

    def _deliveries(self, webhook: Webhook, records: Sequence[AuditRecord]) -> Iterator[Delivery]:
        now = self._clock.now()
        for record in records:
            if TOPIC_BY_EVENT.get(record.event) in webhook.topics:
                yield Delivery(
                    delivery_id=new_record_id(now),
                    webhook_id=webhook.webhook_id,
                    event_id=record.record_id,
                    event=record.event,
                    place=record.place or 0,
                    body=event_body(record),
                    next_try_at=now,
                    ends_at=now + RETRY_PERIOD,
                    created_at=now,
                )
