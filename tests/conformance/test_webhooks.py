"""Contract tests of WebhookStore: late reports are ignored, and one of several racing senders wins."""

import asyncio

from gatehouse.audit.events import AuditEvent
from gatehouse.kernel.errors import Conflict
from gatehouse.kernel.ids import new_record_id
from gatehouse.storage.database import Storage
from gatehouse.webhooks.model import Delivery, DeliveryAttempt, DeliveryState, Topic, Webhook
from tests.support.builders import NOW, a_record

FAILED = DeliveryAttempt(status=503, duration_ms=1, trouble="answered 503")
ARRIVED = DeliveryAttempt(status=204, duration_ms=1)


def a_webhook() -> Webhook:
    return Webhook(
        webhook_id=new_record_id(NOW),
        url="https://shop.example/",
        topics=(Topic.ACCOUNT,),
        sealed_secret=b"sealed",
        created_by="1",
        created_at=NOW,
    )


def a_delivery(webhook: Webhook) -> Delivery:
    return Delivery(
        delivery_id=new_record_id(NOW),
        webhook_id=webhook.webhook_id,
        event_id=new_record_id(NOW),
        event="user.created",
        place=1,
        body="{}",
        next_try_at=NOW,
        ends_at=NOW,
        created_at=NOW,
    )


async def test_worker_that_lost_its_lease_changes_nothing_about_a_delivery(storage: Storage) -> None:
    store = storage.webhooks
    webhook = await store.create_webhook(a_webhook(), a_record(AuditEvent.WEBHOOK_CREATED))
    delivery = a_delivery(webhook)
    await store.enqueue_delivery(delivery, a_record(AuditEvent.WEBHOOK_REDELIVERED))
    [late] = await store.claim_deliveries(webhook.webhook_id, NOW, lease=50, most=4)
    assert await store.claim_deliveries(webhook.webhook_id, NOW + 49, lease=50, most=4) == []
    [holder] = await store.claim_deliveries(webhook.webhook_id, NOW + 50, lease=50, most=4)
    stopped = a_record(AuditEvent.WEBHOOK_STOPPED)
    assert not await store.give_up_delivery(late, FAILED, NOW + 51, most=1, entry=stopped)
    await store.schedule_retry(late, FAILED, NOW + 900)
    await store.mark_delivered(late, ARRIVED, NOW + 51)
    stored = await store.delivery(webhook.webhook_id, delivery.delivery_id)
    assert (stored.state, stored.status, stored.held_until) == (DeliveryState.WAITING, 0, NOW + 100)
    await store.mark_delivered(holder, ARRIVED, NOW + 52)
    assert not await store.give_up_delivery(holder, FAILED, NOW + 53, most=1, entry=stopped)
    stored = await store.delivery(webhook.webhook_id, delivery.delivery_id)
    assert (stored.state, stored.status, stored.done_at) == (DeliveryState.DELIVERED, 204, NOW + 52)
    assert (await store.webhook(webhook.webhook_id)).enabled


async def test_only_one_of_many_concurrent_readers_advances_a_webhook(storage: Storage) -> None:
    store = storage.webhooks
    webhook = await store.create_webhook(a_webhook(), a_record(AuditEvent.WEBHOOK_CREATED))
    results = await asyncio.gather(*(store.enqueue_and_advance(webhook, 7, [a_delivery(webhook)]) for _ in range(5)))
    assert sorted(results) == [False, False, False, False, True]
    assert len(await store.deliveries(webhook.webhook_id, None, 9)) == 1
    assert (await store.webhook(webhook.webhook_id)).place == 7


async def test_webhooks_that_are_made_at_once_are_all_made_or_told_to_try_again(storage: Storage) -> None:
    store = storage.webhooks
    created = await asyncio.gather(
        *(store.create_webhook(a_webhook(), a_record(AuditEvent.WEBHOOK_CREATED)) for _ in range(6)),
        return_exceptions=True,
    )
    assert all(isinstance(webhook, Webhook | Conflict) for webhook in created)
    assert len(await store.webhooks()) == sum(isinstance(webhook, Webhook) for webhook in created) > 0
