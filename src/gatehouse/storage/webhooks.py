"""Keeps webhooks and their deliveries (WebhookStore)."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import and_, bindparam, delete, func, null, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import HeadMove, Record
from gatehouse.kernel.errors import Conflict
from gatehouse.storage.audit import move_head, record
from gatehouse.storage.rows import columns_of
from gatehouse.storage.runner import Stored, act, look, survey
from gatehouse.storage.statements import Notice, Row, Statement, Verb
from gatehouse.storage.tables.audit import audit_seals
from gatehouse.storage.tables.webhooks import webhook_deliveries, webhooks
from gatehouse.webhooks.errors import DeliveryNotFound, WebhookChanged, WebhookNotFound, WebhooksFull
from gatehouse.webhooks.model import (
    LOG_KEPT,
    LOG_MOST,
    PING,
    WAITING_MOST,
    WEBHOOKS_MOST,
    Attempt,
    Delivery,
    DeliveryState,
    Held,
    Topic,
    Webhook,
)

CHANNEL: Final = "webhooks"

_WEBHOOK: Final = [column for column in webhooks.c if column.name != "slot"]
_NEWEST = select(func.coalesce(func.max(audit_seals.c.place), 0)).scalar_subquery()
_THIS = webhooks.c.webhook_id == bindparam("of")
_ONE = webhook_deliveries.c.delivery_id == bindparam("one")
_OF_THIS = webhook_deliveries.c.webhook_id == bindparam("of")
_WAITING = webhook_deliveries.c.state == DeliveryState.WAITING.value
_HELD = and_(_ONE, _WAITING, webhook_deliveries.c.tries == bindparam("held"))

SLOTS = Statement(select(webhooks.c.slot))
INSERT = Statement(insert(webhooks).on_conflict_do_nothing().returning(webhooks.c.webhook_id))
WEBHOOK = Statement(select(*_WEBHOOK).where(_THIS))
HOLD = Statement(select(webhooks.c.webhook_id).where(_THIS).with_for_update())
ALL = Statement(select(*_WEBHOOK).order_by(webhooks.c.created_at, webhooks.c.webhook_id))
CHANGE = Statement(
    update(webhooks)
    .where(_THIS, webhooks.c.version == bindparam("seen"))
    .values(
        {name: bindparam(name) for name in ("url", "description", "topics", "enabled")}
        | {"version": webhooks.c.version + 1}
    )
    .returning(webhooks.c.webhook_id)
)
ENABLED_AGAIN = Statement(update(webhooks).where(_THIS).values(given_up=0, stopped_at=0))
READ_ALL = Statement(update(webhooks).where(_THIS).values(place=_NEWEST))
ROTATE = Statement(
    update(webhooks)
    .where(_THIS)
    .values(
        sealed_old_secret=webhooks.c.sealed_secret,
        sealed_secret=bindparam("sealed"),
        old_secret_ends_at=bindparam("ends_at"),
        version=webhooks.c.version + 1,
    )
    .returning(webhooks.c.webhook_id)
)
REMOVE = Statement(delete(webhooks).where(_THIS).returning(webhooks.c.version))
REMOVE_LOG = Statement(delete(webhook_deliveries).where(_OF_THIS))

NEWEST = Statement(select(_NEWEST.label("place")))
_WAITS = (
    select(func.count())
    .where(webhook_deliveries.c.webhook_id == webhooks.c.webhook_id, _WAITING)
    .correlate(webhooks)
    .scalar_subquery()
)
BEHIND = Statement(
    select(*_WEBHOOK).where(webhooks.c.enabled, webhooks.c.place < bindparam("newest"), bindparam("room") > _WAITS)
)
FOLLOW = Statement(
    update(webhooks)
    .where(_THIS, webhooks.c.place == bindparam("read"), webhooks.c.enabled)
    .values(place=bindparam("to"))
    .returning(webhooks.c.webhook_id)
)
INSERT_DELIVERY = Statement(insert(webhook_deliveries))
HASTEN = Statement(
    update(webhook_deliveries)
    .where(_ONE, _WAITING)
    .values(next_try_at=bindparam("now"))
    .returning(webhook_deliveries.c.delivery_id)
)

_IS_DUE = and_(
    _WAITING,
    webhook_deliveries.c.next_try_at <= bindparam("now"),
    webhook_deliveries.c.held_until <= bindparam("now"),
)
_MAY_GO = or_(webhooks.c.enabled, webhook_deliveries.c.event == PING)
DUE = Statement(
    select(webhook_deliveries.c.webhook_id)
    .join(webhooks, webhooks.c.webhook_id == webhook_deliveries.c.webhook_id)
    .where(_IS_DUE, _MAY_GO)
    .distinct()
)
# The inner select locks what it finds and steps over what another node has locked; SQLite has one writer.
_DUE = (
    select(webhook_deliveries.c.delivery_id)
    .where(
        _OF_THIS,
        _IS_DUE,
        or_(bindparam("enabled"), webhook_deliveries.c.event == PING),
        or_(bindparam("any"), _ONE),
    )
    .order_by(webhook_deliveries.c.next_try_at, webhook_deliveries.c.place)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("due")
)
CLAIM = Statement(
    update(webhook_deliveries)
    .where(webhook_deliveries.c.delivery_id.in_(select(_DUE.c.delivery_id)))
    .values(held_until=bindparam("until"), tries=webhook_deliveries.c.tries + 1)
    .returning(*webhook_deliveries.c)
)
_ATTEMPT: Final[dict[str, Any]] = {name: bindparam(name) for name in ("status", "duration_ms", "trouble")}
DONE = Statement(
    update(webhook_deliveries)
    .where(_HELD)
    .values({"state": bindparam("state"), "done_at": bindparam("now"), **_ATTEMPT})
    .returning(webhook_deliveries.c.delivery_id)
)
PUT_OFF = Statement(
    update(webhook_deliveries).where(_HELD).values({"next_try_at": bindparam("again"), "held_until": 0, **_ATTEMPT})
)
ARRIVED = Statement(update(webhooks).where(_THIS, webhooks.c.given_up > 0).values(given_up=0))
COUNT = Statement(update(webhooks).where(_THIS).values(given_up=webhooks.c.given_up + 1))
STOP = Statement(
    update(webhooks)
    .where(_THIS, webhooks.c.enabled, webhooks.c.given_up >= bindparam("most"))
    .values(enabled=False, stopped_at=bindparam("now"), version=webhooks.c.version + 1)
    .returning(webhooks.c.webhook_id)
)

DELIVERY = Statement(select(webhook_deliveries).where(_OF_THIS, _ONE))
NEWEST_FIRST: Final = (
    webhook_deliveries.c.created_at.desc(),
    webhook_deliveries.c.place.desc(),
    webhook_deliveries.c.delivery_id,
)
LOG = Statement(
    select(webhook_deliveries)
    .where(_OF_THIS, or_(bindparam("any"), webhook_deliveries.c.state == bindparam("state")))
    .order_by(*NEWEST_FIRST)
    .limit(bindparam("most"))
)
_OVER = (
    select(
        webhook_deliveries.c.delivery_id,
        func.row_number().over(partition_by=webhook_deliveries.c.webhook_id, order_by=NEWEST_FIRST).label("age"),
    )
    .where(webhook_deliveries.c.state != DeliveryState.WAITING.value)
    .subquery("over_")
)
FORGET_MORE = Statement(
    delete(webhook_deliveries).where(
        webhook_deliveries.c.delivery_id.in_(select(_OVER.c.delivery_id).where(_OVER.c.age > bindparam("kept")))
    )
)
FORGET_OLD = Statement(delete(webhook_deliveries).where(webhook_deliveries.c.created_at <= bindparam("before")))
FORGET_SECRETS = Statement(
    update(webhooks)
    .where(webhooks.c.sealed_old_secret.is_not(None), webhooks.c.old_secret_ends_at <= bindparam("now"))
    .values(sealed_old_secret=null(), old_secret_ends_at=0)
)


def create(webhook: Webhook, entry: Record) -> Verb[Webhook]:
    taken = {row.slot for row in (yield SLOTS())}
    free = next((slot for slot in range(WEBHOOKS_MOST) if slot not in taken), None)
    if free is None:
        raise WebhooksFull
    place = (yield NEWEST())[0].place
    if not (yield INSERT(**{**columns_of(webhook), "place": place, "slot": free})):
        raise Conflict("another webhook was created at the same time: try again")
    yield from record(entry)
    return (yield from one(webhook.webhook_id))


def change(before: Webhook, after: Webhook, entry: Record, *, from_now: bool) -> Verb[Webhook]:
    fields = {"url": after.url, "description": after.description, "topics": after.topics, "enabled": after.enabled}
    if not (yield CHANGE(of=before.webhook_id, seen=before.version, **fields)):
        yield from one(before.webhook_id)
        raise WebhookChanged
    if after.enabled and not before.enabled:
        yield ENABLED_AGAIN(of=before.webhook_id)
        yield Notice(CHANNEL, "")
    if from_now:
        yield READ_ALL(of=before.webhook_id)
    yield from record(entry)
    return (yield from one(before.webhook_id))


def rotate(webhook_id: str, sealed: bytes, old_ends_at: int, entry: Record) -> Verb[Webhook]:
    if not (yield ROTATE(of=webhook_id, sealed=sealed, ends_at=old_ends_at)):
        raise WebhookNotFound
    yield from record(entry)
    return (yield from one(webhook_id))


def remove(webhook_id: str, entry: Record, *, seen: int | None = None) -> Verb[None]:
    rows = yield REMOVE(of=webhook_id)
    if not rows:
        raise WebhookNotFound
    if seen not in (None, rows[0].version):
        raise WebhookChanged
    yield REMOVE_LOG(of=webhook_id)
    yield from record(entry)


def one(webhook_id: str) -> Verb[Webhook]:
    rows = yield WEBHOOK(of=webhook_id)
    if not rows:
        raise WebhookNotFound
    return _webhook(rows[0])


def all_webhooks() -> Verb[Sequence[Webhook]]:
    return [_webhook(row) for row in (yield ALL())]


def behind() -> Verb[tuple[int, Sequence[Webhook]]]:
    newest: int = (yield NEWEST())[0].place
    return newest, [_webhook(row) for row in (yield BEHIND(newest=newest, room=WAITING_MOST))]


def follow(webhook: Webhook, place: int, deliveries: Sequence[Delivery]) -> Verb[bool]:
    if not (yield FOLLOW(of=webhook.webhook_id, read=webhook.place, to=place)):
        return False
    if deliveries:
        yield INSERT_DELIVERY.many([columns_of(delivery) for delivery in deliveries])
    return True


def enqueue(delivery: Delivery, entry: Record) -> Verb[None]:
    if not (yield HOLD(of=delivery.webhook_id)):  # whoever removes it waits, and removes this too
        raise WebhookNotFound
    yield INSERT_DELIVERY(**columns_of(delivery))
    yield from record(entry)
    yield Notice(CHANNEL, "")


def offer_head(head: HeadMove, deliveries: Sequence[Delivery]) -> Verb[None]:
    yield from move_head(head)
    if deliveries:
        yield INSERT_DELIVERY.many([columns_of(delivery) for delivery in deliveries])
        yield Notice(CHANNEL, "")


def hasten(delivery_id: str, now: int, entry: Record) -> Verb[bool]:
    if not (yield HASTEN(one=delivery_id, now=now)):
        return False
    yield from record(entry)
    yield Notice(CHANNEL, "")
    return True


def due(now: int) -> Verb[Sequence[str]]:
    return [row.webhook_id for row in (yield DUE(now=now))]


def claim(webhook_id: str, now: int, *, lease: int, most: int, only: str = "") -> Verb[Sequence[Held]]:
    rows = yield WEBHOOK(of=webhook_id)
    if not rows:
        return []
    webhook = _webhook(rows[0])
    taken = yield CLAIM(
        of=webhook_id,
        now=now,
        until=now + lease,
        most=most,
        enabled=webhook.enabled,
        any=not only,
        one=only,
    )
    held = [Held(delivery=_delivery(row), webhook=webhook) for row in taken]
    return sorted(held, key=lambda one: one.delivery.place)


def delivered(held: Held, attempt: Attempt, now: int) -> Verb[None]:
    if (yield from _done(held, attempt, DeliveryState.DELIVERED, now)):
        yield ARRIVED(of=held.webhook.webhook_id)


def put_off(held: Held, attempt: Attempt, next_try_at: int) -> Verb[None]:
    yield PUT_OFF(**_held(held), **columns_of(attempt), again=next_try_at)


def give_up(held: Held, attempt: Attempt, now: int, *, most: int, entry: Record) -> Verb[bool]:
    if not (yield from _done(held, attempt, DeliveryState.GIVEN_UP, now)) or held.delivery.event == PING:
        return False
    yield COUNT(of=held.webhook.webhook_id)
    if not (yield STOP(of=held.webhook.webhook_id, most=most, now=now)):
        return False
    yield from record(entry)
    return True


def _done(held: Held, attempt: Attempt, state: DeliveryState, now: int) -> Verb[bool]:
    return bool((yield DONE(**_held(held), **columns_of(attempt), state=state.value, now=now)))


def _held(held: Held) -> dict[str, Any]:
    return {"one": held.delivery.delivery_id, "held": held.delivery.tries}


def delivery_of(webhook_id: str, delivery_id: str) -> Verb[Delivery]:
    rows = yield DELIVERY(of=webhook_id, one=delivery_id)
    if not rows:
        raise DeliveryNotFound
    return _delivery(rows[0])


def deliveries_of(webhook_id: str, state: DeliveryState | None, limit: int) -> Verb[Sequence[Delivery]]:
    rows = yield LOG(of=webhook_id, any=state is None, state="" if state is None else state.value, most=limit)
    return [_delivery(row) for row in rows]


def sweep(now: int) -> Verb[None]:
    """Part of sweeping."""
    yield FORGET_OLD(before=now - LOG_KEPT)
    yield FORGET_MORE(kept=LOG_MOST)
    yield FORGET_SECRETS(now=now)


class WebhookStorage(Stored):
    create = act(create)
    change = act(change)
    rotate = act(rotate)
    remove = act(remove)
    webhook = look(one)
    webhooks = look(all_webhooks)
    behind = look(behind)
    follow = act(follow)
    enqueue = act(enqueue)
    offer_head = act(offer_head)
    hasten = act(hasten)
    due = look(due)
    claim = act(claim)
    delivered = act(delivered)
    put_off = act(put_off)
    give_up = act(give_up)
    delivery = look(delivery_of)
    deliveries = survey(deliveries_of)


def _webhook(row: Row) -> Webhook:
    fields = row._asdict()
    return Webhook(**{**fields, "topics": tuple(Topic(name) for name in fields["topics"])})


def _delivery(row: Row) -> Delivery:
    fields = row._asdict()
    return Delivery(**{**fields, "state": DeliveryState(fields["state"])})
