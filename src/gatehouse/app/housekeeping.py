"""The background jobs of a serving process: seal the audit log, rotate keys, send mail, delete what expired."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import structlog

from gatehouse.app.services import Services
from gatehouse.app.services.core import DAY, SERVICE_ORIGIN, check_promotion
from gatehouse.kernel.errors import GatehouseError
from gatehouse.storage.keys import CHANNEL as KEYS_CHANGED
from gatehouse.storage.mail import CHANNEL as MAIL_QUEUED
from gatehouse.storage.oauth.logout_calls import CHANNEL as SIGNED_OUT
from gatehouse.storage.personal_data import CHANNEL as DATA_ASKED
from gatehouse.storage.settings import CHANNEL as SETTINGS_CHANGED
from gatehouse.storage.webhooks import CHANNEL as WEBHOOK_DUE

log = structlog.get_logger(__name__)

SEAL_EVERY: Final = 0.5  # seconds
HEADS_EVERY: Final = 15.0  # how soon a head that is due is published (audit.head_minutes)
KEYS_EVERY: Final = 300.0  # well within the time a key is published before it signs
MAIL_EVERY: Final = 60.0  # how soon a failed mail is sent again
TEXT_EVERY: Final = 10.0  # the same of a text message, whose code lives five minutes
DATA_EVERY: Final = 60.0  # how soon an application that did not answer is called again
LOGOUT_EVERY: Final = 15.0  # how soon a failed back-channel logout is sent again
WEBHOOKS_EVERY: Final = 15.0  # how soon a failed delivery is tried again
SETTINGS_EVERY: Final = 0.9  # how soon a change of settings applies here, without a notice too
SWEEP_EVERY: Final = 600.0
NODE_EVERY: Final = 1.0  # how soon a change of the master key applies here
TALLY_EVERY: Final = 10.0
VERIFY_EVERY: Final = 5.0
DECOYS_EVERY: Final = 60.0  # how soon the hashes of an import count here


@asynccontextmanager
async def housekeeping(services: Services) -> AsyncIterator[None]:
    """Run the background jobs while the body runs; at the end, seal what was recorded."""
    notified = {
        "mail": (MAIL_QUEUED, MAIL_EVERY, services.mail.outbox.run_once),
        "text-messages": (MAIL_QUEUED, TEXT_EVERY, services.mail.text_outbox.run_once),
        "settings": (SETTINGS_CHANGED, SETTINGS_EVERY, lambda: apply_settings(services)),
        "data": (DATA_ASKED, DATA_EVERY, services.personal_data.jobs.run_once),
        "logout": (SIGNED_OUT, LOGOUT_EVERY, services.oauth.backchannel_logout.run_once),
        "webhooks": (WEBHOOK_DUE, WEBHOOKS_EVERY, services.webhooks.deliveries.start_due),
    }
    events = {name: asyncio.Event() for name in notified}
    keys_changed = asyncio.Event()
    stop_listening = [listen(services, KEYS_CHANGED, keys_changed)]
    for name, (channel, _, _) in notified.items():
        events[name].set()  # what an earlier run, or another node that died, left undone
        stop_listening.append(listen(services, channel, events[name]))
    await check_promotion(services.core)
    await run_job(services.keys.node_reporter.run_once)
    await run_job(services.accounts.decoy_hashes.load)
    jobs = {
        "seal": run_every(services, SEAL_EVERY, lambda: seal_audit_log(services, events["webhooks"])),
        "audit-head": run_every(services, HEADS_EVERY, services.webhooks.head_publisher.run_once),
        "keys": run_every(services, KEYS_EVERY, lambda: rotate_and_reload_keys(services)),
        "reload-keys": reload_keys_on_notice(services, keys_changed),
        "node": run_every(services, NODE_EVERY, services.keys.node_reporter.run_once),
        "tally": run_every(services, TALLY_EVERY, services.core.tally.flush),
        "failed-sign-ins": run_every(services, TALLY_EVERY, services.core.failed_sign_ins.flush),
        "verify": run_every(services, VERIFY_EVERY, services.audit.continuous_verifier.run_once),
        "decoys": run_every(services, DECOYS_EVERY, services.accounts.decoy_hashes.run_once),
        "sweep": run_every(services, SWEEP_EVERY, lambda: delete_expired(services)),
    }
    for name, (_, seconds, job) in notified.items():
        jobs[f"retry-{name}"] = run_every(services, seconds, job)
        jobs[name] = run_on_event(job, events[name])
    tasks = [asyncio.create_task(job, name=name) for name, job in jobs.items()]
    try:
        yield
    finally:
        for stop in stop_listening:
            stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await run_job(services.core.tally.flush)
        await run_job(services.core.failed_sign_ins.flush)
        await services.webhooks.deliveries.stop()
        await run_job(services.audit.sealer.seal_all)
        await run_job(services.keys.node_reporter.leave)


def listen(services: Services, channel: str, event: asyncio.Event) -> Callable[[], None]:
    """Set the event at every notice on the channel, until the returned function is called."""
    return services.storage.runner.listen(channel, lambda _: event.set())


async def run_every(services: Services, seconds: float, job: Callable[[], Awaitable[object]]) -> None:
    while True:
        await services.clock.sleep(seconds)
        await run_job(job)


async def run_job(job: Callable[[], Awaitable[object]]) -> None:
    """Run a job; a failure is logged, never ends the service, and the job runs again at its next time."""
    try:
        await job()
    except GatehouseError as error:
        log.warning("housekeeping failed", reason=str(error))
    except Exception:
        log.exception("housekeeping failed")


async def seal_audit_log(services: Services, webhooks_due: asyncio.Event) -> None:
    """Seal, then wake up the webhook deliveries; if this process dies in between, another one sends them.

    Without the master key in use nothing can be sealed, as the job "node" reports once.
    """
    if services.core.masters.missing:
        return
    if await services.audit.sealer.seal_all():
        webhooks_due.set()


async def apply_settings(services: Services) -> None:
    await services.core.live_settings.reload()
    await services.accounts.label_rules.apply()


async def rotate_and_reload_keys(services: Services) -> None:
    await services.keys.rotation.rotate_due(origin=SERVICE_ORIGIN)
    await services.keys.keyring.reload()


async def reload_keys_on_notice(services: Services, keys_changed: asyncio.Event) -> None:
    """Reload keys after another node changed them, or after notices were missed without a database connection."""
    while True:
        await keys_changed.wait()
        keys_changed.clear()
        await run_job(services.keys.keyring.reload)
        await run_job(lambda: check_promotion(services.core))


async def run_on_event(job: Callable[[], Awaitable[object]], event: asyncio.Event) -> None:
    while True:
        await event.wait()
        event.clear()
        await run_job(job)


async def delete_expired(services: Services) -> None:
    """Delete what has expired; nothing relies on it, because every reader checks the time itself (faults I15)."""
    now = services.clock.now()
    await services.storage.sweep(now)
    await services.accounts.guest_expiry.erase_idle(SERVICE_ORIGIN)
    await services.accounts.erasure.erase_lost(SERVICE_ORIGIN)
    history_begins = now - services.settings.sessions.history_days * DAY
    while await services.storage.audit.erase_old_sign_ins(history_begins):
        pass
    while await services.storage.failed_sign_ins.delete_failures_before(history_begins):
        pass
    if services.settings.audit.retention_days:
        await services.audit.retention.delete_before(now - services.settings.audit.retention_days * DAY)
