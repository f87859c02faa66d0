"""Turns sealed audit records into deliveries, in log order, each event once per webhook, and sends them.

A webhook's position in the log is stored with its deliveries in one transaction. So no committed event is lost when
a node dies, and of two nodes that read the same records one writes.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import structlog
from msgspec import Struct

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, AuditStore
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.outbound.client import OutboundClient
from gatehouse.outbound.model import CallFailed, CallLimits, OutboundRequest
from gatehouse.outbound.worker import Backoff, CallWorker
from gatehouse.webhooks.message_body import event_body, signed_headers
from gatehouse.webhooks.messages import TOPIC_BY_EVENT
from gatehouse.webhooks.model import (
    MAX_WEBHOOKS,
    RETRY_PERIOD,
    Delivery,
    DeliveryAttempt,
    LeasedDelivery,
    NoSecret,
    Webhook,
    WebhookStore,
    webhook_secret_purpose,
)

RECORD_BATCH: Final = 200  # per read


class AuditLogConsumer(Struct, kw_only=True, eq=False):
    store: WebhookStore
    log: AuditStore
    clock: Clock

    async def catch_up(self) -> None:
        """Read until every webhook has read all sealed records, or has the maximum of deliveries waiting."""
        while await self._step():
            pass

    async def _step(self) -> bool:
        newest, behind = await self.store.webhooks_behind()
        read: dict[int, Sequence[AuditRecord]] = {}  # most webhooks have the same position
        for webhook in behind:
            if webhook.place not in read:
                read[webhook.place] = await self.log.records_from(webhook.place + 1, RECORD_BATCH)
            records = read[webhook.place]
            # None left: retention has deleted what it had not read.
            place = (records[-1].place or newest) if records else newest
            await self.store.enqueue_and_advance(webhook, place, list(self._deliveries(webhook, records)))
        return bool(behind)

    def _deliveries(self, webhook: Webhook, records: Sequence[AuditRecord]) -> Iterator[Delivery]:
        now = self.clock.now()
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


# Sends the deliveries, with one task per webhook, so that an unresponsive receiver delays no other.


log = structlog.get_logger(__name__)

MAX_CONCURRENT_PER_WEBHOOK: Final = 4  # deliveries to one webhook at once
# One slot for every possible task: a slow receiver uses up only its own.
DELIVERY_LIMITS: Final = CallLimits(max_concurrent=MAX_CONCURRENT_PER_WEBHOOK * MAX_WEBHOOKS, body_bytes=65_536)
BACKOFF: Final = Backoff(initial=15, maximum=4 * 3_600)
MAX_CONSECUTIVE_FAILURES: Final = 10  # then the webhook is disabled
HTTP_GONE: Final = 410  # the receiver unsubscribes (Standard Webhooks, "Delivery success and failure")
SERVICE_ORIGIN: Final = AuditOrigin(actor="service")


class DeliveryWorker:
    def __init__(
        self,
        *,
        store: WebhookStore,
        consumer: AuditLogConsumer,
        poster: OutboundClient,
        secret_opener: SecretSealer,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._store = store
        self._consumer = consumer
        self._poster = poster
        self._secret_opener = secret_opener
        self._recorder = recorder
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._due_again: set[str] = set()  # webhooks that got due deliveries while their task was running
        self.outcomes: Counter[str] = Counter()  # of deliveries, for the metrics of this process

    async def start_due(self) -> None:
        """Read new records and start sending what is due, without waiting for receivers."""
        await self._consumer.catch_up()
        for webhook_id in await self._store.due_webhooks(self._clock.now()):
            self._due_again.add(webhook_id)
            if webhook_id not in self._tasks:
                self._tasks[webhook_id] = asyncio.create_task(
                    self._run_webhook(webhook_id), name=f"webhook-{webhook_id}"
                )

    async def run_once(self) -> None:
        """Do the same and wait for every task."""
        await self.start_due()
        await asyncio.gather(*self._tasks.values())

    async def stop(self) -> None:
        """Cancel all tasks; another node repeats interrupted deliveries when their lease has ended."""
        lanes = tuple(self._tasks.values())
        for lane in lanes:
            lane.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)

    async def deliver_now(self, webhook_id: str, delivery_id: str) -> None:
        """Send this one delivery now, unless another node holds it."""
        await self._call_worker(webhook_id, only=delivery_id).run_once()

    async def _run_webhook(self, webhook_id: str) -> None:
        try:
            while webhook_id in self._due_again:
                self._due_again.discard(webhook_id)
                await self._call_worker(webhook_id).run_once()
                await self._check_due_again(webhook_id)
        except Exception:
            log.exception("webhook: worker failed", webhook_id=webhook_id)  # retried in the next round
        finally:
            del self._tasks[webhook_id]

    async def _check_due_again(self, webhook_id: str) -> None:
        """Read on if the webhook can take more deliveries again."""
        await self._consumer.catch_up()
        if webhook_id in await self._store.due_webhooks(self._clock.now()):
            self._due_again.add(webhook_id)

    def _call_worker(self, webhook_id: str, *, only: str = "") -> CallWorker[LeasedDelivery]:
        return CallWorker(claim=partial(self._claim, webhook_id, only), run=self._deliver, poster=self._poster)

    async def _claim(self, webhook_id: str, only: str, lease: int) -> Sequence[LeasedDelivery]:
        return await self._store.claim_deliveries(
            webhook_id, self._clock.now(), lease=lease, most=MAX_CONCURRENT_PER_WEBHOOK, only=only
        )

    async def _deliver(self, lease: LeasedDelivery) -> None:
        attempt = await self._attempt(lease)
        if not attempt.trouble:
            await self._store.mark_delivered(lease, attempt, self._clock.now())
            self.outcomes["delivered"] += 1
            return
        next_try_at = self._clock.now() + BACKOFF.delay_after(lease.delivery.tries)
        if attempt.status == HTTP_GONE:
            await self._give_up(lease, attempt, most=1)
        elif next_try_at > lease.delivery.ends_at:
            await self._give_up(lease, attempt, most=MAX_CONSECUTIVE_FAILURES)
        else:
            await self._store.schedule_retry(lease, attempt, next_try_at)
            self.outcomes["retried"] += 1

    async def _attempt(self, lease: LeasedDelivery) -> DeliveryAttempt:
        began = self._clock.monotonic()
        status, trouble = 0, ""
        try:
            answer = await self._poster.post(self._build_request(lease))
        except CallFailed as failed:
            # Only the public half is stored, because the detail may name internal addresses.
            log.info("webhook: delivery attempt failed", webhook_id=lease.webhook.webhook_id, reason=failed.detail)
            trouble = failed.public
        except NoSecret as error:
            trouble = error.public
        else:
            status = answer.status
            trouble = "" if answer.is_success else f"answered {answer.status}"
        return DeliveryAttempt(
            status=status, duration_ms=round((self._clock.monotonic() - began) * 1_000), trouble=trouble
        )

    def _build_request(self, lease: LeasedDelivery) -> OutboundRequest:
        delivery, now = lease.delivery, self._clock.now()
        body = delivery.body.encode()
        headers = signed_headers(delivery.event_id, body, self._signing_keys(lease.webhook, now), now)
        return OutboundRequest(url=lease.webhook.url, body=body, headers=headers)

    def _signing_keys(self, webhook: Webhook, now: int) -> Sequence[bytes]:
        """Return a key for each live, intact secret: during a rotation the receiver knows both. Raises NoSecret."""
        live = [webhook.sealed_secret]
        if webhook.sealed_old_secret is not None and webhook.old_secret_ends_at > now:
            live.append(webhook.sealed_old_secret)
        opened = [
            self._secret_opener.try_open(sealed, purpose=webhook_secret_purpose(webhook.webhook_id))
            for sealed in live
        ]
        sound = [secret for secret in opened if secret is not None]
        if not sound:
            raise NoSecret
        return sound

    async def _give_up(self, lease: LeasedDelivery, attempt: DeliveryAttempt, *, most: int) -> None:
        webhook_id = lease.webhook.webhook_id
        self.outcomes["failed"] += 1
        log.warning("webhook: delivery failed", webhook_id=webhook_id, event_id=lease.delivery.event_id)
        entry = self._recorder.record(
            AuditEvent.WEBHOOK_STOPPED,
            SERVICE_ORIGIN,
            subject=f"webhook {webhook_id}",
            details={"status": attempt.status},
        )
        if await self._store.give_up_delivery(lease, attempt, self._clock.now(), most=most, entry=entry):
            log.warning("webhook: disabled", webhook_id=webhook_id)
