"""Writes the head of the audit log to the service's own log and sends it to webhooks, now and then.

Kept there it shows what the database cannot show about itself: that the whole of it was replaced by an older one.
"""

from typing import Final

import msgspec
import structlog

from gatehouse.audit.errors import SealedMeanwhile
from gatehouse.audit.head import ChainHead, HeadCodec, HeadExporter
from gatehouse.audit.model import HeadSwap
from gatehouse.audit.store import AuditStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id
from gatehouse.webhooks.messages import head_body as head_message
from gatehouse.webhooks.model import HEAD_EVENT, RETRY_PERIOD, Delivery, Topic, Webhook
from gatehouse.webhooks.store import WebhookStore

log = structlog.get_logger(__name__)

MAX_TRIES: Final = 5  # sealers move the head too


class HeadPublisher:
    def __init__(
        self,
        *,
        store: WebhookStore,
        audit: AuditStore,
        head_codec: HeadCodec,
        head_exporter: HeadExporter,
        clock: Clock,
        interval: int,
    ) -> None:
        """`every`: seconds, 0 for never."""
        self._store = store
        self._audit = audit
        self._head_codec = head_codec
        self._head_exporter = head_exporter
        self._clock = clock
        self._interval = interval

    async def run_once(self) -> None:
        """Offer the head if it has moved and it is time; of several nodes one does."""
        for _ in range(MAX_TRIES):
            kept = (await self._audit.chain_end()).head
            head = self._head_codec.decode(kept)
            if head is None or not self._is_due(head):
                return
            try:
                await self._publish(kept, head)
            except SealedMeanwhile:
                continue
            return

    def _is_due(self, head: ChainHead) -> bool:
        return (
            bool(self._interval)
            and head.place > head.offered
            and self._clock.now() >= head.offered_at + self._interval
        )

    async def _publish(self, kept: str | None, head: ChainHead) -> None:
        value, now = self._head_exporter.export(head), self._clock.now()
        moved = self._head_codec.encode(msgspec.structs.replace(head, offered=head.place, offered_at=now))
        deliveries = [
            head_delivery(webhook, value, now)
            for webhook in await self._store.webhooks()
            if webhook.enabled and Topic.AUDIT in webhook.topics
        ]
        await self._store.publish_head(HeadSwap(before=kept, after=moved), deliveries)
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
