"""Writes the head of the audit log periodically to the service's own log and to webhooks.

Stored elsewhere, it shows what the database alone cannot: that the whole database was replaced by an older one.
"""

from typing import Final

import msgspec
from msgspec import Struct

from gatehouse.audit.head import ChainHead, HeadCodec, HeadExporter
from gatehouse.audit.model import AuditStore, HeadSwap, SealedMeanwhile
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id
from gatehouse.webhooks.delivery import log
from gatehouse.webhooks.message_body import head_body as head_message
from gatehouse.webhooks.model import HEAD_EVENT, RETRY_PERIOD, Delivery, Topic, Webhook, WebhookStore

MAX_TRIES: Final = 5  # audit sealers move the head too


class HeadPublisher(Struct, kw_only=True, eq=False):
    """`interval` is in seconds, 0 for never."""

    store: WebhookStore
    audit: AuditStore
    head_codec: HeadCodec
    head_exporter: HeadExporter
    clock: Clock
    interval: int

    async def run_once(self) -> None:
        """Publish the head if it has moved and the interval has passed; of several nodes one does."""
        for _ in range(MAX_TRIES):
            end = await self.audit.chain_end()
            head = self.head_codec.decode(end)
            if head is None or not self._is_due(head):
                return
            try:
                await self._publish(end.head, head)
            except SealedMeanwhile:
                continue
            return

    def _is_due(self, head: ChainHead) -> bool:
        return (
            bool(self.interval) and head.place > head.offered and self.clock.now() >= head.offered_at + self.interval
        )

    async def _publish(self, stored_head: str | None, head: ChainHead) -> None:
        value, now = self.head_exporter.export(head), self.clock.now()
        moved = self.head_codec.encode(msgspec.structs.replace(head, offered=head.place, offered_at=now))
        deliveries = [
            head_delivery(webhook, value, now)
            for webhook in await self.store.webhooks()
            if webhook.enabled and Topic.AUDIT in webhook.topics
        ]
        await self.store.publish_head(HeadSwap(before=stored_head, after=moved), deliveries)
        log.info("audit.head", head=value)


def head_delivery(webhook: Webhook, value: str, now: int) -> Delivery:
    event_id = new_record_id(now)
    return Delivery(
        delivery_id=new_record_id(now),
        webhook_id=webhook.webhook_id,
        event_id=event_id,
        event=HEAD_EVENT,
        place=0,
        body=head_message(event_id, value, now),
        next_try_at=now,
        ends_at=now + RETRY_PERIOD,
        created_at=now,
    )
