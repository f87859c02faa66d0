"""The part of the composition root that tells webhooks what happened."""

from gatehouse.app.personal_data import outbound
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.store import AuditStore
from gatehouse.kernel.clock import Clock
from gatehouse.keys.sealing import MasterKeys
from gatehouse.settings import Settings
from gatehouse.webhooks.delivering import LIMITS, Deliveries
from gatehouse.webhooks.desk import Webhooks
from gatehouse.webhooks.following import Follower
from gatehouse.webhooks.store import WebhookStore


def webhook_deliveries(
    settings: Settings,
    *,
    store: WebhookStore,
    log: AuditStore,
    masters: MasterKeys,
    recorder: Recorder,
    clock: Clock,
) -> Deliveries:
    return Deliveries(
        store=store,
        follower=Follower(store=store, log=log, clock=clock),
        poster=outbound(settings, LIMITS),
        opening=masters,
        recorder=recorder,
        clock=clock,
    )


def webhooks(
    settings: Settings, *, store: WebhookStore, masters: MasterKeys, recorder: Recorder, clock: Clock
) -> Webhooks:
    return Webhooks(store=store, sealing=masters, recorder=recorder, clock=clock, reachable=settings.outbound.allow)
