"""Stores webhooks and their deliveries (WebhookStore)."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import and_, bindparam, delete, func, null, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import AuditRecord, HeadSwap
from gatehouse.kernel.errors import Conflict
from gatehouse.storage.audit import add_audit_record, swap_head
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import SqlStore, read, snapshot_read, write
from gatehouse.storage.statements import Notification, Row, Statement, Verb
from gatehouse.storage.tables.audit import audit_seals
from gatehouse.storage.tables.webhooks import webhook_deliveries, webhooks
from gatehouse.webhooks.model import (
    CHANGEABLE_FIELDS,
    LOG_RETENTION,
    MAX_LOGGED_DELIVERIES,
    MAX_WAITING_DELIVERIES,
    MAX_WEBHOOKS,
    PING_EVENT,
    Delivery,
    DeliveryAttempt,
    DeliveryNotFound,
    DeliveryState,
    LeasedDelivery,
    Topic,
    Webhook,
    WebhookChanged,
    WebhookNotFound,
    WebhooksFull,
)

CHANNEL: Final = "webhooks"

_WEBHOOK_COLUMNS: Final = [column for column in webhooks.c if column.name != "slot"]
_NEWEST_PLACE = select(func.coalesce(func.max(audit_seals.c.place), 0)).scalar_subquery()
_THIS_WEBHOOK = webhooks.c.webhook_id == bindparam("of")
_THIS_DELIVERY = webhook_deliveries.c.delivery_id == bindparam("one")
_OF_THIS_WEBHOOK = webhook_deliveries.c.webhook_id == bindparam("of")
_WAITING = webhook_deliveries.c.state == DeliveryState.WAITING.value
_LEASED_BY_US = and_(_THIS_DELIVERY, _WAITING, webhook_deliveries.c.tries == bindparam("held"))

SLOTS = Statement(lambda: select(webhooks.c.slot))
INSERT_WEBHOOK = Statement(lambda: insert(webhooks).on_conflict_do_nothing().returning(webhooks.c.webhook_id))
WEBHOOK_BY_ID = Statement(lambda: select(*_WEBHOOK_COLUMNS).where(_THIS_WEBHOOK))
LOCK_WEBHOOK = Statement(lambda: select(webhooks.c.webhook_id).where(_THIS_WEBHOOK).with_for_update())
ALL_WEBHOOKS = Statement(lambda: select(*_WEBHOOK_COLUMNS).order_by(webhooks.c.created_at, webhooks.c.webhook_id))
CHANGEABLE: Final = tuple(field.name for field in CHANGEABLE_FIELDS)
SECRETS: Final = ("sealed_secret", "sealed_old_secret", "old_secret_ends_at")
UPDATE_WEBHOOK = Statement(
    lambda: (
        update(webhooks)
        .where(_THIS_WEBHOOK, webhooks.c.version == bindparam("seen"))
        .values({name: bindparam(name) for name in (*CHANGEABLE, *SECRETS)} | {"version": webhooks.c.version + 1})
        .returning(webhooks.c.webhook_id)
    )
)
RESET_GIVEN_UP = Statement(lambda: update(webhooks).where(_THIS_WEBHOOK).values(given_up=0, stopped_at=0))
SKIP_TO_NEWEST = Statement(lambda: update(webhooks).where(_THIS_WEBHOOK).values(place=_NEWEST_PLACE))
ROTATE_SECRET = Statement(
    lambda: (
        update(webhooks)
        .where(_THIS_WEBHOOK)
        .values(
            sealed_old_secret=webhooks.c.sealed_secret,
            sealed_secret=bindparam("sealed"),
            old_secret_ends_at=bindparam("ends_at"),
            version=webhooks.c.version + 1,
        )
        .returning(webhooks.c.webhook_id)
    )
)
DROP_WEBHOOK = Statement(lambda: delete(webhooks).where(_THIS_WEBHOOK).returning(webhooks.c.version))
DROP_DELIVERIES = Statement(lambda: delete(webhook_deliveries).where(_OF_THIS_WEBHOOK))

READ_NEWEST_PLACE = Statement(lambda: select(_NEWEST_PLACE.label("place")))
_WAITING_DELIVERIES = (
    select(func.count())
    .where(webhook_deliveries.c.webhook_id == webhooks.c.webhook_id, _WAITING)
    .correlate(webhooks)
    .scalar_subquery()
)
WEBHOOKS_BEHIND = Statement(
    lambda: select(*_WEBHOOK_COLUMNS).where(
        webhooks.c.enabled, webhooks.c.place < bindparam("newest"), bindparam("room") > _WAITING_DELIVERIES
    )
)
ADVANCE_WEBHOOK = Statement(
    lambda: (
        update(webhooks)
        .where(_THIS_WEBHOOK, webhooks.c.place == bindparam("read"), webhooks.c.enabled)
        .values(place=bindparam("to"))
        .returning(webhooks.c.webhook_id)
    )
)
INSERT_DELIVERY = Statement(lambda: insert(webhook_deliveries))
MAKE_DUE_NOW = Statement(
    lambda: (
        update(webhook_deliveries)
        .where(_THIS_DELIVERY, _WAITING)
        .values(next_try_at=bindparam("now"))
        .returning(webhook_deliveries.c.delivery_id)
    )
)

_IS_DUE = and_(
    _WAITING,
    webhook_deliveries.c.next_try_at <= bindparam("now"),
    webhook_deliveries.c.held_until <= bindparam("now"),
)
_IS_ALLOWED = or_(webhooks.c.enabled, webhook_deliveries.c.event == PING_EVENT)
DUE_WEBHOOKS = Statement(
    lambda: (
        select(webhook_deliveries.c.webhook_id)
        .join(webhooks, webhooks.c.webhook_id == webhook_deliveries.c.webhook_id)
        .where(_IS_DUE, _IS_ALLOWED)
        .distinct()
    )
)
# The inner select locks the rows it finds and skips those another node has locked; SQLite has one writer.
_DUE_DELIVERIES = (
    select(webhook_deliveries.c.delivery_id)
    .where(
        _OF_THIS_WEBHOOK,
        _IS_DUE,
        or_(bindparam("enabled"), webhook_deliveries.c.event == PING_EVENT),
        or_(bindparam("any"), _THIS_DELIVERY),
    )
    .order_by(webhook_deliveries.c.next_try_at, webhook_deliveries.c.place)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("due")
)
CLAIM_DELIVERIES = Statement(
    lambda: (
        update(webhook_deliveries)
        .where(webhook_deliveries.c.delivery_id.in_(select(_DUE_DELIVERIES.c.delivery_id)))
        .values(held_until=bindparam("until"), tries=webhook_deliveries.c.tries + 1)
        .returning(*webhook_deliveries.c)
    )
)
_ATTEMPT_COLUMNS: Final[dict[str, Any]] = {name: bindparam(name) for name in ("status", "duration_ms", "trouble")}
FINISH_DELIVERY = Statement(
    lambda: (
        update(webhook_deliveries)
        .where(_LEASED_BY_US)
        .values({"state": bindparam("state"), "done_at": bindparam("now"), **_ATTEMPT_COLUMNS})
        .returning(webhook_deliveries.c.delivery_id)
    )
)
SCHEDULE_RETRY = Statement(
    lambda: (
        update(webhook_deliveries)
        .where(_LEASED_BY_US)
        .values({"next_try_at": bindparam("again"), "held_until": 0, **_ATTEMPT_COLUMNS})
    )
)
CLEAR_GIVEN_UP = Statement(lambda: update(webhooks).where(_THIS_WEBHOOK, webhooks.c.given_up > 0).values(given_up=0))
COUNT_GIVEN_UP = Statement(lambda: update(webhooks).where(_THIS_WEBHOOK).values(given_up=webhooks.c.given_up + 1))
DISABLE_WEBHOOK = Statement(
    lambda: (
        update(webhooks)
        .where(_THIS_WEBHOOK, webhooks.c.enabled, webhooks.c.given_up >= bindparam("most"))
        .values(enabled=False, stopped_at=bindparam("now"), version=webhooks.c.version + 1)
        .returning(webhooks.c.webhook_id)
    )
)

DELIVERY_BY_ID = Statement(lambda: select(webhook_deliveries).where(_OF_THIS_WEBHOOK, _THIS_DELIVERY))
NEWEST_FIRST: Final = (
    webhook_deliveries.c.created_at.desc(),
    webhook_deliveries.c.place.desc(),
    webhook_deliveries.c.delivery_id,
)
DELIVERY_LOG = Statement(
    lambda: (
        select(webhook_deliveries)
        .where(_OF_THIS_WEBHOOK, or_(bindparam("any"), webhook_deliveries.c.state == bindparam("state")))
        .order_by(*NEWEST_FIRST)
        .limit(bindparam("most"))
    )
)
_FINISHED_BY_AGE = (
    select(
        webhook_deliveries.c.delivery_id,
        func.row_number().over(partition_by=webhook_deliveries.c.webhook_id, order_by=NEWEST_FIRST).label("age"),
    )
    .where(webhook_deliveries.c.state != DeliveryState.WAITING.value)
    .subquery("over_")
)
DROP_EXCESS_DELIVERIES = Statement(
    lambda: delete(webhook_deliveries).where(
        webhook_deliveries.c.delivery_id.in_(
            select(_FINISHED_BY_AGE.c.delivery_id).where(_FINISHED_BY_AGE.c.age > bindparam("kept"))
        )
    )
)
DROP_OLD_DELIVERIES = Statement(
    lambda: delete(webhook_deliveries).where(webhook_deliveries.c.created_at <= bindparam("before"))
)
DROP_OLD_SECRETS = Statement(
    lambda: (
        update(webhooks)
        .where(webhooks.c.sealed_old_secret.is_not(None), webhooks.c.old_secret_ends_at <= bindparam("now"))
        .values(sealed_old_secret=null(), old_secret_ends_at=0)
    )
)


def create_webhook(webhook: Webhook, entry: AuditRecord) -> Verb[Webhook]:
    taken = {row.slot for row in (yield SLOTS())}
    free = next((slot for slot in range(MAX_WEBHOOKS) if slot not in taken), None)
    if free is None:
        raise WebhooksFull
    place = (yield READ_NEWEST_PLACE())[0].place
    if not (yield INSERT_WEBHOOK(**{**column_values(webhook), "place": place, "slot": free})):
        raise Conflict("another webhook was created at the same time: try again")
    yield from add_audit_record(entry)
    return (yield from webhook_by_id(webhook.webhook_id))


def change_webhook(before: Webhook, after: Webhook, entry: AuditRecord, *, from_now: bool) -> Verb[Webhook]:
    fields = {name: getattr(after, name) for name in (*CHANGEABLE, *SECRETS)}
    if not (yield UPDATE_WEBHOOK(of=before.webhook_id, seen=before.version, **fields)):
        yield from webhook_by_id(before.webhook_id)
        raise WebhookChanged
    if after.enabled and not before.enabled:
        yield RESET_GIVEN_UP(of=before.webhook_id)
        yield Notification(CHANNEL, "")
    if from_now:
        yield SKIP_TO_NEWEST(of=before.webhook_id)
    yield from add_audit_record(entry)
    return (yield from webhook_by_id(before.webhook_id))


def rotate_secret(webhook_id: str, sealed: bytes, old_ends_at: int, entry: AuditRecord) -> Verb[Webhook]:
    if not (yield ROTATE_SECRET(of=webhook_id, sealed=sealed, ends_at=old_ends_at)):
        raise WebhookNotFound
    yield from add_audit_record(entry)
    return (yield from webhook_by_id(webhook_id))


def remove_webhook(webhook_id: str, entry: AuditRecord, *, seen: int | None = None) -> Verb[None]:
    rows = yield DROP_WEBHOOK(of=webhook_id)
    if not rows:
        raise WebhookNotFound
    if seen not in (None, rows[0].version):
        raise WebhookChanged
    yield DROP_DELIVERIES(of=webhook_id)
    yield from add_audit_record(entry)


def webhook_by_id(webhook_id: str) -> Verb[Webhook]:
    rows = yield WEBHOOK_BY_ID(of=webhook_id)
    if not rows:
        raise WebhookNotFound
    return _webhook_from_row(rows[0])


def all_webhooks() -> Verb[Sequence[Webhook]]:
    return [_webhook_from_row(row) for row in (yield ALL_WEBHOOKS())]


def webhooks_behind() -> Verb[tuple[int, Sequence[Webhook]]]:
    newest: int = (yield READ_NEWEST_PLACE())[0].place
    return newest, [
        _webhook_from_row(row) for row in (yield WEBHOOKS_BEHIND(newest=newest, room=MAX_WAITING_DELIVERIES))
    ]


def enqueue_and_advance(webhook: Webhook, place: int, deliveries: Sequence[Delivery]) -> Verb[bool]:
    if not (yield ADVANCE_WEBHOOK(of=webhook.webhook_id, read=webhook.place, to=place)):
        return False
    if deliveries:
        yield INSERT_DELIVERY.bulk([column_values(delivery) for delivery in deliveries])
    return True


def enqueue_delivery(delivery: Delivery, entry: AuditRecord) -> Verb[None]:
    if not (yield LOCK_WEBHOOK(of=delivery.webhook_id)):  # a concurrent removal waits, and removes this too
        raise WebhookNotFound
    yield INSERT_DELIVERY(**column_values(delivery))
    yield from add_audit_record(entry)
    yield Notification(CHANNEL, "")


def publish_head(head: HeadSwap, deliveries: Sequence[Delivery]) -> Verb[None]:
    yield from swap_head(head)
    if deliveries:
        yield INSERT_DELIVERY.bulk([column_values(delivery) for delivery in deliveries])
        yield Notification(CHANNEL, "")


def make_due_now(delivery_id: str, now: int, entry: AuditRecord) -> Verb[bool]:
    if not (yield MAKE_DUE_NOW(one=delivery_id, now=now)):
        return False
    yield from add_audit_record(entry)
    yield Notification(CHANNEL, "")
    return True


def due_webhooks(now: int) -> Verb[Sequence[str]]:
    return [row.webhook_id for row in (yield DUE_WEBHOOKS(now=now))]


def claim_deliveries(
    webhook_id: str, now: int, *, lease: int, most: int, only: str = ""
) -> Verb[Sequence[LeasedDelivery]]:
    rows = yield WEBHOOK_BY_ID(of=webhook_id)
    if not rows:
        return []
    webhook = _webhook_from_row(rows[0])
    taken = yield CLAIM_DELIVERIES(
        of=webhook_id,
        now=now,
        until=now + lease,
        most=most,
        enabled=webhook.enabled,
        any=not only,
        one=only,
    )
    leases = [LeasedDelivery(delivery=delivery_from_row(row), webhook=webhook) for row in taken]
    return sorted(leases, key=lambda leased_delivery: leased_delivery.delivery.place)


def mark_delivered(lease: LeasedDelivery, attempt: DeliveryAttempt, now: int) -> Verb[None]:
    if (yield from _finish_delivery(lease, attempt, DeliveryState.DELIVERED, now)):
        yield CLEAR_GIVEN_UP(of=lease.webhook.webhook_id)


def schedule_retry(lease: LeasedDelivery, attempt: DeliveryAttempt, next_try_at: int) -> Verb[None]:
    yield SCHEDULE_RETRY(**_lease_parameters(lease), **column_values(attempt), again=next_try_at)


def give_up_delivery(
    lease: LeasedDelivery, attempt: DeliveryAttempt, now: int, *, most: int, entry: AuditRecord
) -> Verb[bool]:
    if (
        not (yield from _finish_delivery(lease, attempt, DeliveryState.GIVEN_UP, now))
        or lease.delivery.event == PING_EVENT
    ):
        return False
    yield COUNT_GIVEN_UP(of=lease.webhook.webhook_id)
    if not (yield DISABLE_WEBHOOK(of=lease.webhook.webhook_id, most=most, now=now)):
        return False
    yield from add_audit_record(entry)
    return True


def _finish_delivery(lease: LeasedDelivery, attempt: DeliveryAttempt, state: DeliveryState, now: int) -> Verb[bool]:
    return bool(
        (yield FINISH_DELIVERY(**_lease_parameters(lease), **column_values(attempt), state=state.value, now=now))
    )


def _lease_parameters(lease: LeasedDelivery) -> dict[str, Any]:
    return {"one": lease.delivery.delivery_id, "held": lease.delivery.tries}


def delivery_by_id(webhook_id: str, delivery_id: str) -> Verb[Delivery]:
    rows = yield DELIVERY_BY_ID(of=webhook_id, one=delivery_id)
    if not rows:
        raise DeliveryNotFound
    return delivery_from_row(rows[0])


def deliveries_of(webhook_id: str, state: DeliveryState | None, limit: int) -> Verb[Sequence[Delivery]]:
    rows = yield DELIVERY_LOG(
        of=webhook_id, any=state is None, state="" if state is None else state.value, most=limit
    )
    return [delivery_from_row(row) for row in rows]


def sweep_webhooks(now: int) -> Verb[None]:
    """Part of sweeping."""
    yield DROP_OLD_DELIVERIES(before=now - LOG_RETENTION)
    yield DROP_EXCESS_DELIVERIES(kept=MAX_LOGGED_DELIVERIES)
    yield DROP_OLD_SECRETS(now=now)


class WebhookStorage(SqlStore):
    create_webhook = write(create_webhook)
    change_webhook = write(change_webhook)
    rotate_secret = write(rotate_secret)
    remove_webhook = write(remove_webhook)
    webhook = read(webhook_by_id)
    webhooks = read(all_webhooks)
    webhooks_behind = read(webhooks_behind)
    enqueue_and_advance = write(enqueue_and_advance)
    enqueue_delivery = write(enqueue_delivery)
    publish_head = write(publish_head)
    make_due_now = write(make_due_now)
    due_webhooks = read(due_webhooks)
    claim_deliveries = write(claim_deliveries)
    mark_delivered = write(mark_delivered)
    schedule_retry = write(schedule_retry)
    give_up_delivery = write(give_up_delivery)
    delivery = read(delivery_by_id)
    deliveries = snapshot_read(deliveries_of)


def _webhook_from_row(row: Row) -> Webhook:
    fields = row._asdict()
    return Webhook(**{**fields, "topics": tuple(Topic(name) for name in fields["topics"])})


def delivery_from_row(row: Row) -> Delivery:
    fields = row._asdict()
    return Delivery(**{**fields, "state": DeliveryState(fields["state"])})
