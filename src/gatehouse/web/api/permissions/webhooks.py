"""POST /api/permissions/webhook (docs/guides/webhooks.md)."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import entry_members, entry_values, with_members
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint
from gatehouse.web.http.parse import read_json
from gatehouse.web.http.routing import Endpoint
from gatehouse.webhooks.model import DELIVERY_FIELDS, WEBHOOK_FIELDS, Delivery, Webhook
from gatehouse.webhooks.service import WebhookDraft, Webhooks, WebhookWithSecret


class WebhookRequest(CredentialFields, frozen=True, kw_only=True):
    action: Literal["get", "save", "delete", "rotate", "deliveries", "redeliver", "test"]
    data: WebhookDraft = WebhookDraft()


@with_members(lambda: entry_members(WEBHOOK_FIELDS))
class WebhookRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook without its secret."""


class WebhookEntry(WebhookRecord, frozen=True, kw_only=True, omit_defaults=True, tag="webhook", tag_field="kind"):
    stopped: str = ""  # when the service disabled it
    old_secret_until: str = ""
    secret: str = ""  # only in the response that made it


@with_members(lambda: entry_members(DELIVERY_FIELDS))
class DeliveryEntry(msgspec.Struct, frozen=True, kw_only=True, tag="delivery", tag_field="kind"):
    """A delivery without its body; `next_try` is empty unless it waits."""


class WebhookResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`data` is a list for get and deliveries, a webhook for save and rotate, a delivery for redeliver and test."""

    status: str
    data: tuple[WebhookEntry | DeliveryEntry, ...] | WebhookEntry | DeliveryEntry | None = None


class WebhookEndpoint(Struct, kw_only=True, eq=False):
    webhooks: Webhooks
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        ask = await read_json(request, WebhookRequest)
        actor, data = (
            actor_of(request, await self.authenticator.authenticate(credentials_of(request, ask), DEFAULT_POLICY)),
            ask.data,
        )
        match ask.action:
            case "get":
                listed = (await self.webhooks.get(actor, data.webhook_id),) if data.webhook_id else None
                return data_response(tuple(map(webhook_entry, listed or await self.webhooks.list(actor))))
            case "save":
                return data_response(await self._save(actor, data))
            case "delete":
                await self.webhooks.remove(actor, data.webhook_id, data.version)
                return ok_response()
            case "rotate":
                return data_response(
                    webhook_entry_with_secret(await self.webhooks.rotate_secret(actor, data.webhook_id))
                )
            case _:
                return data_response(await self._handle_deliveries(actor, ask.action, data))

    async def _save(self, actor: Actor, draft: WebhookDraft) -> WebhookEntry:
        if draft.webhook_id:
            return webhook_entry_with_secret(await self.webhooks.change(actor, draft))
        return webhook_entry_with_secret(await self.webhooks.create(actor, draft))

    async def _handle_deliveries(
        self, actor: Actor, action: Literal["deliveries", "redeliver", "test"], data: WebhookDraft
    ) -> DeliveryEntry | tuple[DeliveryEntry, ...]:
        match action:
            case "deliveries":
                log = await self.webhooks.list_deliveries(actor, data.webhook_id, state=data.state, limit=data.limit)
                return tuple(map(delivery_entry, log))
            case "redeliver":
                return delivery_entry(await self.webhooks.redeliver(actor, data.webhook_id, data.delivery_id))
            case "test":
                return delivery_entry(await self.webhooks.send_ping(actor, data.webhook_id))

    def endpoint(self) -> Endpoint:
        return permission_endpoint(
            "webhook",
            self.handle,
            name="webhook",
            request=WebhookRequest,
            section="interface §4.14",
            summary="Webhooks (get, save, delete, rotate) and deliveries (deliveries, redeliver, test)",
            answers=WebhookResponse,
        )


def webhook_entry(webhook: Webhook, *, secret: str = "") -> WebhookEntry:
    return WebhookEntry(**entry_values(webhook, WEBHOOK_FIELDS), secret=secret)


def webhook_entry_with_secret(made: WebhookWithSecret) -> WebhookEntry:
    return webhook_entry(made.webhook, secret=made.secret)


def delivery_entry(delivery: Delivery) -> DeliveryEntry:
    values = entry_values(delivery, DELIVERY_FIELDS)
    return DeliveryEntry(**values if delivery.is_waiting else {**values, "next_try": ""})
