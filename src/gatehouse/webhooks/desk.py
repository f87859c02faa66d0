"""Webhooks for whoever administers the installation: made, changed, removed, tried, and looked after."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from gatehouse.audit.events import Event
from gatehouse.audit.model import Details, Record
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.addresses import Network
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id
from gatehouse.permissions.commands.versions import refuse_old_version, version_named
from gatehouse.permissions.documents.fields import read_line, read_list, shown
from gatehouse.permissions.documents.grammar import check_outbound_url
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require
from gatehouse.webhooks.messages import new_key, ping, secret_of
from gatehouse.webhooks.model import (
    LOG_MOST,
    OLD_SECRET_LIVES,
    PING,
    TRIED_FOR,
    Delivery,
    DeliveryState,
    Topic,
    Webhook,
    secret_purpose,
)
from gatehouse.webhooks.store import WebhookStore

DESCRIPTION_LONGEST: Final = 200
CHANGEABLE: Final = ("url", "description", "topics", "enabled")


class WebhookDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data`: save uses the first six fields and creates without an ID; other fields are ignored (R6)."""

    webhook_id: str = ""
    url: object = UNSET
    description: object = UNSET
    events: object = UNSET  # topics
    enabled: bool | UnsetType = UNSET
    version: int | UnsetType = UNSET
    from_now: bool = False  # leave out what happened while it was disabled
    delivery_id: str = ""  # redeliver
    state: str = ""  # this and the next: deliveries
    limit: int = 100
    kind: object = None
    stopped: object = None
    created: object = None
    created_by: object = None
    old_secret_until: object = None


class Sealing(Protocol):
    """What closes secrets: the master keys."""

    def seal(self, plain: bytes, *, purpose: str) -> bytes:
        """Return the secret so that only a holder of the master key can read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A webhook with a new secret, which is shown here and nowhere else."""

    webhook: Webhook
    secret: str = field(repr=False)


class Webhooks:
    def __init__(
        self,
        *,
        store: WebhookStore,
        sealing: Sealing,
        recorder: Recorder,
        clock: Clock,
        reachable: Sequence[Network],
    ) -> None:
        """`reachable`: networks the operator lets us call though they are not public (outbound.allow)."""
        self._store = store
        self._sealing = sealing
        self._recorder = recorder
        self._clock = clock
        self._reachable = tuple(reachable)

    async def list(self, actor: Actor) -> Sequence[Webhook]:
        require(actor.rights, Operation.ADMINISTER)
        return await self._store.webhooks()

    async def get(self, actor: Actor, webhook_id: str) -> Webhook:
        require(actor.rights, Operation.ADMINISTER)
        return await self._store.webhook(webhook_id)

    async def create(self, actor: Actor, draft: WebhookDraft) -> Made:
        """It is told of what happens from now on. Raises WebhooksFull."""
        require(actor.rights, Operation.ADMINISTER)
        webhook_id, key = new_record_id(self._clock.now()), new_key()
        blank = Webhook(
            webhook_id=webhook_id,
            url="",
            topics=(),
            sealed_secret=self._sealing.seal(key, purpose=secret_purpose(webhook_id)),
            created_by=actor.origin.actor,
            created_at=self._clock.now(),
        )
        webhook = self._drafted(blank, draft)
        if not webhook.url or not webhook.topics:
            raise Malformed("data: url and events are required for a new webhook")
        made = await self._store.create(webhook, self._entry(Event.WEBHOOK_CREATED, actor, webhook_id))
        return Made(webhook=made, secret=secret_of(key))

    async def change(self, actor: Actor, draft: WebhookDraft) -> Webhook:
        """Disabled it pauses: what happens meanwhile comes when it is enabled again, unless `from_now`."""
        require(actor.rights, Operation.ADMINISTER)
        before = await self._store.webhook(draft.webhook_id)
        refuse_old_version(draft.version, before.version)
        after = self._drafted(before, draft)
        names = [name for name in CHANGEABLE if getattr(before, name) != getattr(after, name)]
        entry = self._entry(Event.WEBHOOK_CHANGED, actor, before.webhook_id, {"fields": ", ".join(names)})
        return await self._store.change(before, after, entry, from_now=draft.from_now)

    async def remove(self, actor: Actor, webhook_id: str, version: int | UnsetType = UNSET) -> None:
        require(actor.rights, Operation.ADMINISTER)
        entry = self._entry(Event.WEBHOOK_REMOVED, actor, webhook_id)
        await self._store.remove(webhook_id, entry, seen=version_named(version))

    async def rotate(self, actor: Actor, webhook_id: str) -> Made:
        """A new secret; the one before signs beside it for a week, and one before that no more."""
        require(actor.rights, Operation.ADMINISTER)
        key = new_key()
        webhook = await self._store.rotate(
            webhook_id,
            self._sealing.seal(key, purpose=secret_purpose(webhook_id)),
            self._clock.now() + OLD_SECRET_LIVES,
            self._entry(Event.WEBHOOK_SECRET_ROTATED, actor, webhook_id),
        )
        return Made(webhook=webhook, secret=secret_of(key))

    async def deliveries(
        self, actor: Actor, webhook_id: str, *, state: str = "", limit: int = 100
    ) -> Sequence[Delivery]:
        """The newest first, of one state or of all."""
        require(actor.rights, Operation.ADMINISTER)
        if state and state not in list(DeliveryState):
            raise Malformed(f"data.state: must be one of {', '.join(DeliveryState)}")
        if not 1 <= limit <= LOG_MOST:
            raise Malformed(f"data.limit: must be an integer from 1 to {LOG_MOST}")
        await self._store.webhook(webhook_id)
        return await self._store.deliveries(webhook_id, DeliveryState(state) if state else None, limit)

    async def redeliver(self, actor: Actor, webhook_id: str, delivery_id: str) -> Delivery:
        """Send an event once more, with the id it had; one that still waits is due at once."""
        require(actor.rights, Operation.ADMINISTER)
        was, now = await self._store.delivery(webhook_id, delivery_id), self._clock.now()
        entry = self._entry(Event.WEBHOOK_REDELIVERED, actor, webhook_id, {"event_id": was.event_id})
        if was.waits and await self._store.hasten(delivery_id, now, entry):
            return await self._store.delivery(webhook_id, delivery_id)
        again = Delivery(
            delivery_id=new_record_id(now),
            webhook_id=webhook_id,
            event_id=was.event_id,
            event=was.event,
            place=was.place,
            body=was.body,
            next_try_at=now,
            ends_at=now if was.event == PING else now + TRIED_FOR,
            created_at=now,
        )
        await self._store.enqueue(again, entry)
        return again

    async def test(self, actor: Actor, webhook_id: str) -> Delivery:
        """Send a ping, once, to a disabled one too."""
        require(actor.rights, Operation.ADMINISTER)
        now = self._clock.now()
        event_id = new_record_id(now)
        trial = Delivery(
            delivery_id=new_record_id(now),
            webhook_id=webhook_id,
            event_id=event_id,
            event=PING,
            place=0,
            body=ping(event_id, webhook_id, actor.origin.actor, now),
            next_try_at=now,
            ends_at=now,
            created_at=now,
        )
        await self._store.enqueue(trial, self._entry(Event.WEBHOOK_TESTED, actor, webhook_id))
        return trial

    def _drafted(self, webhook: Webhook, draft: WebhookDraft) -> Webhook:
        """The webhook with everything the draft gives."""
        if draft.url is not UNSET:
            webhook = replace(webhook, url=check_outbound_url(draft.url, "data.url", self._reachable))
        if draft.description is not UNSET:
            text = read_line(draft.description, "data.description", DESCRIPTION_LONGEST)
            webhook = replace(webhook, description=text)
        if draft.events is not UNSET:
            webhook = replace(webhook, topics=topics_of(draft.events, "data.events"))
        return webhook if draft.enabled is UNSET else replace(webhook, enabled=draft.enabled)

    def _entry(self, event: Event, actor: Actor, webhook_id: str, details: Details | None = None) -> Record:
        return self._recorder.record(event, actor.origin, subject=f"webhook {webhook_id}", details=details)


def topics_of(given: object, place: str) -> tuple[Topic, ...]:
    wanted = read_list(given, place, len(Topic))
    if wrong := [one for one in wanted if one not in list(Topic)]:
        raise Malformed(f"{place}: {shown(wrong[0])} is not one of {', '.join(Topic)}")
    if not wanted or len(set(wanted)) != len(wanted):
        raise Malformed(f"{place}: must list at least one of {', '.join(Topic)}, each once")
    return tuple(topic for topic in Topic if topic in wanted)
