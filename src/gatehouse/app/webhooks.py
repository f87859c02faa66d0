"""The part of the composition root that tells webhooks what happened."""

from gatehouse.app.personal_data import outbound_client
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.store import AuditStore
from gatehouse.kernel.clock import Clock
from gatehouse.keys.sealing import MasterKeys
from gatehouse.settings import Settings
from gatehouse.webhooks.delivering import DELIVERY_LIMITS, DeliveryWorker
from gatehouse.webhooks.desk import Webhooks
from gatehouse.webhooks.following import AuditLogConsumer
from gatehouse.webhooks.store import WebhookStore


def webhook_deliveries(
    settings: Settings,
    *,
    store: WebhookStore,
    log: AuditStore,
    masters: MasterKeys,
    recorder: Recorder,
    clock: Clock,
) -> DeliveryWorker:
    return DeliveryWorker(
        store=store,
        consumer=AuditLogConsumer(store=store, log=log, clock=clock),
        poster=outbound_client(settings, DELIVERY_LIMITS),
        secret_opener=masters,
        recorder=recorder,
        clock=clock,
    )


def webhooks(
    settings: Settings, *, store: WebhookStore, masters: MasterKeys, recorder: Recorder, clock: Clock
) -> Webhooks:
    return Webhooks(
        store=store, secret_sealer=masters, recorder=recorder, clock=clock, allowed_networks=settings.outbound.allow
    )
