"""Webhooks and their deliveries, and the head of the audit log that is published through them."""

from msgspec import Struct

from gatehouse.app.services.audit import AuditServices
from gatehouse.app.services.core import MINUTE, Core, outbound_client
from gatehouse.webhooks.delivery import DELIVERY_LIMITS, AuditLogConsumer, DeliveryWorker
from gatehouse.webhooks.head_publisher import HeadPublisher
from gatehouse.webhooks.service import Webhooks


class WebhookServices(Struct, frozen=True, kw_only=True, eq=False):
    commands: Webhooks
    deliveries: DeliveryWorker
    head_publisher: HeadPublisher


def build_webhooks(core: Core, audit: AuditServices) -> WebhookServices:
    store, log, clock = core.storage.webhooks, core.storage.audit, core.clock
    return WebhookServices(
        commands=Webhooks(
            store=store,
            secret_sealer=core.masters,
            recorder=core.recorder,
            clock=clock,
            allowed_networks=core.settings.outbound.allow,
        ),
        deliveries=DeliveryWorker(
            store=store,
            consumer=AuditLogConsumer(store=store, log=log, clock=clock),
            poster=outbound_client(core.settings, DELIVERY_LIMITS),
            secret_opener=core.masters,
            recorder=core.recorder,
            clock=clock,
        ),
        head_publisher=HeadPublisher(
            store=store,
            audit=log,
            head_codec=audit.head_codec,
            head_exporter=audit.head_exporter,
            clock=clock,
            interval=core.settings.audit.head_minutes * MINUTE,
        ),
    )
