"""POST /api/permissions/webhook (docs/guides/webhooks.md)."""

from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.fields.derive import entry_members, entry_values, with_members
from gatehouse.permissions.authentication.authenticator import Authenticator
from gatehouse.permissions.authentication.credentials import DEFAULT_POLICY
from gatehouse.permissions.rights.actor import Actor
from gatehouse.web.api.permissions.authentication import CredentialFields, actor_of, credentials_of
from gatehouse.web.api.permissions.envelope import data_response, ok_response, permission_endpoint
from gatehouse.web.http.parse import read_action
from gatehouse.web.http.routing import Endpoint
from gatehouse.webhooks.model import DELIVERY_FIELDS, WEBHOOK_FIELDS, Delivery, Webhook
from gatehouse.webhooks.service import WebhookDraft, Webhooks, WebhookWithSecret

DEFAULT_DELIVERIES: Final = 100


class WebhookData(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    webhook_id: str = ""  # empty for get: all of them


class WebhookVersionData(WebhookData, frozen=True, kw_only=True):
    version: int | UnsetType = UNSET


class DeliveryListData(WebhookData, frozen=True, kw_only=True):
    state: str = ""
    limit: int = DEFAULT_DELIVERIES


class DeliveryData(WebhookData, frozen=True, kw_only=True):
    delivery_id: str = ""


class GetWebhooks(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="get"):
    data: WebhookData = WebhookData()


class SaveWebhook(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="save"):
    data: WebhookDraft = WebhookDraft()


class DeleteWebhook(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="delete"):
    data: WebhookVersionData = WebhookVersionData()


class RotateWebhookSecret(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="rotate"):
    data: WebhookData = WebhookData()


class ListDeliveries(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="deliveries"):
    data: DeliveryListData = DeliveryListData()


class Redeliver(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="redeliver"):
    data: DeliveryData = DeliveryData()


class SendTestDelivery(CredentialFields, frozen=True, kw_only=True, tag_field="action", tag="test"):
    data: WebhookData = WebhookData()


WebhookRequest: TypeAlias = (
    GetWebhooks | SaveWebhook | DeleteWebhook | RotateWebhookSecret | ListDeliveries | Redeliver | SendTestDelivery
)


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


WebhookAnswer: TypeAlias = tuple[WebhookEntry | DeliveryEntry, ...] | WebhookEntry | DeliveryEntry


class WebhookResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`data` is a list for get and deliveries, a webhook for save and rotate, a delivery for redeliver and test."""

    status: str
    data: WebhookAnswer | None = None


class WebhookEndpoint(Struct, kw_only=True, eq=False):
    webhooks: Webhooks
    authenticator: Authenticator

    async def handle(self, request: Request) -> Response:
        body: WebhookRequest = await read_action(request, WebhookRequest)
        actor = actor_of(
            request, await self.authenticator.authenticate(credentials_of(request, body), DEFAULT_POLICY)
        )
        data = await self._perform(actor, body)
        return ok_response() if data is None else data_response(data)

    async def _perform(self, actor: Actor, body: WebhookRequest) -> WebhookAnswer | None:
        data: WebhookAnswer | None = None
        webhook_id = body.data.webhook_id
        match body:
            case GetWebhooks():
                listed = (await self.webhooks.get(actor, webhook_id),) if webhook_id else None
                data = tuple(map(webhook_entry, listed or await self.webhooks.list(actor)))
            case SaveWebhook(data=draft):
                write = self.webhooks.change if webhook_id else self.webhooks.create
                data = webhook_entry_with_secret(await write(actor, draft))
            case DeleteWebhook():
                await self.webhooks.remove(actor, webhook_id, body.data.version)
            case RotateWebhookSecret():
                data = webhook_entry_with_secret(await self.webhooks.rotate_secret(actor, webhook_id))
            case ListDeliveries(data=asked):
                log = await self.webhooks.list_deliveries(actor, webhook_id, state=asked.state, limit=asked.limit)
                data = tuple(map(delivery_entry, log))
            case Redeliver():
                data = delivery_entry(await self.webhooks.redeliver(actor, webhook_id, body.data.delivery_id))
            case SendTestDelivery():
                data = delivery_entry(await self.webhooks.send_ping(actor, webhook_id))
        return data

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
