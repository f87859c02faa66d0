"""Administration of webhooks: create, change, remove, test, and the delivery log."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.derive import changed_names, draft_members, with_members
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.addresses import Network
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_record_id
from gatehouse.kernel.sealing import SecretSealer
from gatehouse.permissions.commands.versions import expected_version, refuse_old_version
from gatehouse.permissions.documents.fields import printable, read_line, read_list
from gatehouse.permissions.documents.grammar import check_outbound_url
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.webhooks.message_body import new_webhook_key, ping_body, secret_text
from gatehouse.webhooks.model import (
    CHANGEABLE_FIELDS,
    MAX_LOGGED_DELIVERIES,
    OLD_SECRET_LIFETIME,
    PING_EVENT,
    RETRY_PERIOD,
    WEBHOOK_FIELDS,
    Delivery,
    DeliveryState,
    Topic,
    Webhook,
    WebhookStore,
    webhook_secret_purpose,
)

MAX_DESCRIPTION: Final = 200


@with_members(lambda: draft_members(WEBHOOK_FIELDS))
class WebhookDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data`: save changes what may change and creates without an ID; other members of an entry are ignored (R6)."""

    webhook_id: str = ""
    url: object = UNSET
    description: object = UNSET
    events: object = UNSET
    enabled: bool | UnsetType = UNSET
    version: int | UnsetType = UNSET
    new_secret: bool = False  # required when the URL changes: the new receiver must not know the old one's
    from_now: bool = False  # skip events from while it was disabled
    kind: object = None  # of an entry that is sent back


class WebhookWithSecret(SecretRecord, frozen=True, kw_only=True):
    """A webhook with its new secret, which is shown only here; "" if it kept its secret."""

    webhook: Webhook
    secret: SecretText = ""


class Webhooks:
    def __init__(
        self,
        *,
        store: WebhookStore,
        secret_sealer: SecretSealer,
        recorder: Recorder,
        clock: Clock,
        allowed_networks: Sequence[Network],
    ) -> None:
        """`allowed_networks` are non-public networks that the operator allows calls to (outbound.allow)."""
        self._store = store
        self._secret_sealer = secret_sealer
        self._recorder = recorder
        self._clock = clock
        self._allowed_networks = tuple(allowed_networks)

    async def list(self, actor: Actor) -> Sequence[Webhook]:
        require_operation(actor.rights, Operation.ADMINISTER)
        return await self._store.webhooks()

    async def get(self, actor: Actor, webhook_id: str) -> Webhook:
        require_operation(actor.rights, Operation.ADMINISTER)
        return await self._store.webhook(webhook_id)

    async def create(self, actor: Actor, draft: WebhookDraft) -> WebhookWithSecret:
        """Create a webhook that gets events from now on. Raises WebhooksFull."""
        require_operation(actor.rights, Operation.ADMINISTER)
        webhook_id, key = new_record_id(self._clock.now()), new_webhook_key()
        blank = Webhook(
            webhook_id=webhook_id,
            url="",
            topics=(),
            sealed_secret=self._secret_sealer.seal(key, purpose=webhook_secret_purpose(webhook_id)),
            created_by=actor.origin.actor,
            created_at=self._clock.now(),
        )
        webhook = self._apply_draft(blank, draft)
        if not webhook.url or not webhook.topics:
            raise Malformed("data: url and events are required for a new webhook").on_screen("webhook_required")
        made = await self._store.create_webhook(webhook, self._entry(AuditEvent.WEBHOOK_CREATED, actor, webhook_id))
        return WebhookWithSecret(webhook=made, secret=secret_text(key))

    async def change(self, actor: Actor, draft: WebhookDraft) -> WebhookWithSecret:
        """Change the webhook; events of while it is disabled are sent when it is enabled, unless `from_now`.

        Another URL needs a new secret, and the old one ends: signed with it, the old receiver would accept what the
        new one sends on.
        """
        require_operation(actor.rights, Operation.ADMINISTER)
        before = await self._store.webhook(draft.webhook_id)
        refuse_old_version(draft.version, before.version)
        after = self._apply_draft(before, draft)
        if after.url != before.url and not draft.new_secret:
            raise Malformed(
                "data.url: another URL needs a new secret, so that its receiver does not know the present one; "
                "send new_secret"
            ).on_screen("webhook_secret_needed")
        key = new_webhook_key() if draft.new_secret else None
        if key is not None:
            sealed = self._secret_sealer.seal(key, purpose=webhook_secret_purpose(before.webhook_id))
            after = replace(after, sealed_secret=sealed, sealed_old_secret=None, old_secret_ends_at=0)
        names = [*changed_names(before, after, CHANGEABLE_FIELDS), *(() if key is None else ("sealed_secret",))]
        entry = self._entry(AuditEvent.WEBHOOK_CHANGED, actor, before.webhook_id, {"fields": ", ".join(names)})
        changed = await self._store.change_webhook(before, after, entry, from_now=draft.from_now)
        return WebhookWithSecret(webhook=changed, secret="" if key is None else secret_text(key))

    async def remove(self, actor: Actor, webhook_id: str, version: int | UnsetType = UNSET) -> None:
        require_operation(actor.rights, Operation.ADMINISTER)
        entry = self._entry(AuditEvent.WEBHOOK_REMOVED, actor, webhook_id)
        await self._store.remove_webhook(webhook_id, entry, seen=expected_version(version))

    async def rotate_secret(self, actor: Actor, webhook_id: str) -> WebhookWithSecret:
        """Create a new secret; the previous one signs beside it for a week."""
        require_operation(actor.rights, Operation.ADMINISTER)
        key = new_webhook_key()
        webhook = await self._store.rotate_secret(
            webhook_id,
            self._secret_sealer.seal(key, purpose=webhook_secret_purpose(webhook_id)),
            self._clock.now() + OLD_SECRET_LIFETIME,
            self._entry(AuditEvent.WEBHOOK_SECRET_ROTATED, actor, webhook_id),
        )
        return WebhookWithSecret(webhook=webhook, secret=secret_text(key))

    async def list_deliveries(
        self, actor: Actor, webhook_id: str, *, state: str = "", limit: int = 100
    ) -> Sequence[Delivery]:
        """Return deliveries of one state or all, the newest first."""
        require_operation(actor.rights, Operation.ADMINISTER)
        if state and state not in list(DeliveryState):
            raise Malformed(f"data.state: must be one of {', '.join(DeliveryState)}").on_screen(
                "one_of", names=", ".join(DeliveryState)
            )
        if not 1 <= limit <= MAX_LOGGED_DELIVERIES:
            raise Malformed(f"data.limit: must be an integer from 1 to {MAX_LOGGED_DELIVERIES}")
        await self._store.webhook(webhook_id)
        return await self._store.deliveries(webhook_id, DeliveryState(state) if state else None, limit)

    async def redeliver(self, actor: Actor, webhook_id: str, delivery_id: str) -> Delivery:
        """Send an event again with its event ID; a waiting delivery becomes due now."""
        require_operation(actor.rights, Operation.ADMINISTER)
        was, now = await self._store.delivery(webhook_id, delivery_id), self._clock.now()
        entry = self._entry(AuditEvent.WEBHOOK_REDELIVERED, actor, webhook_id, {"event_id": was.event_id})
        if was.is_waiting and await self._store.make_due_now(delivery_id, now, entry):
            return await self._store.delivery(webhook_id, delivery_id)
        again = Delivery(
            delivery_id=new_record_id(now),
            webhook_id=webhook_id,
            event_id=was.event_id,
            event=was.event,
            place=was.place,
            body=was.body,
            next_try_at=now,
            ends_at=now if was.event == PING_EVENT else now + RETRY_PERIOD,
            created_at=now,
        )
        await self._store.enqueue_delivery(again, entry)
        return again

    async def send_ping(self, actor: Actor, webhook_id: str) -> Delivery:
        """Send a ping once, also to a disabled webhook."""
        require_operation(actor.rights, Operation.ADMINISTER)
        now = self._clock.now()
        event_id = new_record_id(now)
        trial = Delivery(
            delivery_id=new_record_id(now),
            webhook_id=webhook_id,
            event_id=event_id,
            event=PING_EVENT,
            place=0,
            body=ping_body(event_id, webhook_id, actor.origin.actor, now),
            next_try_at=now,
            ends_at=now,
            created_at=now,
        )
        await self._store.enqueue_delivery(trial, self._entry(AuditEvent.WEBHOOK_TESTED, actor, webhook_id))
        return trial

    def _apply_draft(self, webhook: Webhook, draft: WebhookDraft) -> Webhook:
        """Return the webhook with the fields of the draft."""
        if draft.url is not UNSET:
            webhook = replace(webhook, url=check_outbound_url(draft.url, "data.url", self._allowed_networks))
        if draft.description is not UNSET:
            text = read_line(draft.description, "data.description", MAX_DESCRIPTION)
            webhook = replace(webhook, description=text)
        if draft.events is not UNSET:
            webhook = replace(webhook, topics=parse_topics(draft.events, "data.events"))
        return webhook if draft.enabled is UNSET else replace(webhook, enabled=draft.enabled)

    def _entry(self, event: AuditEvent, actor: Actor, webhook_id: str, details: Details | None = None) -> AuditRecord:
        return self._recorder.record(event, actor.origin, subject=f"webhook {webhook_id}", details=details)


def parse_topics(document: object, place: str) -> tuple[Topic, ...]:
    wanted = read_list(document, place, len(Topic))
    if wrong := [topic for topic in wanted if topic not in list(Topic)]:
        raise Malformed(f"{place}: {printable(wrong[0])} is not one of {', '.join(Topic)}")
    if not wanted or len(set(wanted)) != len(wanted):
        raise Malformed(f"{place}: must list at least one of {', '.join(Topic)}, each once").on_screen(
            "topics", names=", ".join(Topic)
        )
    return tuple(topic for topic in Topic if topic in wanted)
