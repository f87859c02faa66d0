"""What a serving process does by itself: seals the audit log, rotates keys, forgets what has ended."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import structlog

from gatehouse.app.services.core import DAY, SERVICE_ORIGIN, CoreServices, check_promotion
from gatehouse.kernel.errors import GatehouseError
from gatehouse.storage.keys import CHANNEL as KEYS_CHANGED
from gatehouse.storage.mail import CHANNEL as MAIL_QUEUED
from gatehouse.storage.oauth.logout_calls import CHANNEL as SIGNED_OUT
from gatehouse.storage.personal_data import CHANNEL as DATA_ASKED
from gatehouse.storage.webhooks import CHANNEL as WEBHOOK_DUE

log = structlog.get_logger(__name__)

SEAL_EVERY: Final = 0.5  # seconds
HEADS_EVERY: Final = 15.0  # how soon a head that is due is offered (audit.head_minutes)
KEYS_EVERY: Final = 300.0  # well within the time a key is published before it signs
MAIL_EVERY: Final = 60.0  # how soon a letter that did not get out is tried again
DATA_EVERY: Final = 60.0  # how soon an application that did not answer is called again
LOGOUT_EVERY: Final = 15.0  # how soon a client that could not be told of a sign-out is told again
WEBHOOKS_EVERY: Final = 15.0  # how soon a webhook that did not answer is tried again
SWEEP_EVERY: Final = 600.0
TALLY_EVERY: Final = 10.0


@asynccontextmanager
async def housekeeping(services: CoreServices) -> AsyncIterator[None]:
    """Keep house while the body runs; at the end whatever was recorded is sealed."""
    told = asyncio.Event()
    forget = services.storage.runner.listen(KEYS_CHANGED, lambda _: told.set())
    mail = asyncio.Event()
    mail.set()  # what an earlier run left in the outbox
    forget_mail = services.storage.runner.listen(MAIL_QUEUED, lambda _: mail.set())
    data = asyncio.Event()
    data.set()  # what an earlier run, or another node that died, left undone
    forget_data = services.storage.runner.listen(DATA_ASKED, lambda _: data.set())
    logout = asyncio.Event()
    logout.set()
    forget_logout = services.storage.runner.listen(SIGNED_OUT, lambda _: logout.set())
    webhooks = asyncio.Event()
    webhooks.set()
    forget_webhooks = services.storage.runner.listen(WEBHOOK_DUE, lambda _: webhooks.set())
    await check_promotion(services)
    duties = [
        asyncio.create_task(run_every(services, SEAL_EVERY, lambda: seal_audit_log(services, webhooks)), name="seal"),
        asyncio.create_task(run_every(services, HEADS_EVERY, services.head_publisher.run_once), name="audit-head"),
        asyncio.create_task(run_every(services, KEYS_EVERY, lambda: rotate_and_reload_keys(services)), name="keys"),
        asyncio.create_task(run_every(services, TALLY_EVERY, services.tally.flush), name="tally"),
        asyncio.create_task(run_every(services, SWEEP_EVERY, lambda: delete_expired(services)), name="sweep"),
        asyncio.create_task(run_every(services, MAIL_EVERY, services.outbox_worker.run_once), name="retry-mail"),
        asyncio.create_task(run_on_event(services.outbox_worker.run_once, mail), name="mail"),
        asyncio.create_task(run_every(services, DATA_EVERY, services.data_jobs.run_once), name="retry-data"),
        asyncio.create_task(run_on_event(services.data_jobs.run_once, data), name="data"),
        asyncio.create_task(
            run_every(services, LOGOUT_EVERY, services.backchannel_logout.run_once), name="retry-logout"
        ),
        asyncio.create_task(run_on_event(services.backchannel_logout.run_once, logout), name="logout"),
        asyncio.create_task(
            run_every(services, WEBHOOKS_EVERY, services.webhook_deliveries.start_due), name="retry-webhooks"
        ),
        asyncio.create_task(run_on_event(services.webhook_deliveries.start_due, webhooks), name="webhooks"),
        asyncio.create_task(reload_keys_on_notice(services, told), name="look-again"),
    ]
    try:
        yield
    finally:
        forget()
        forget_mail()
        forget_data()
        forget_logout()
        forget_webhooks()
        for duty in duties:
            duty.cancel()
        await asyncio.gather(*duties, return_exceptions=True)
        await run_job(services.tally.flush)
        await services.webhook_deliveries.stop()
        await run_job(services.audit_sealer.seal_all)


async def run_every(services: CoreServices, seconds: float, job: Callable[[], Awaitable[object]]) -> None:
    while True:
        await services.clock.sleep(seconds)
        await run_job(job)


async def run_job(job: Callable[[], Awaitable[object]]) -> None:
    """A duty that fails is told and tried again at its next time; it never ends the service."""
    try:
        await job()
    except GatehouseError as error:
        log.warning("housekeeping failed", reason=str(error))
    except Exception:
        log.exception("housekeeping failed")


async def seal_audit_log(services: CoreServices, webhooks_due: asyncio.Event) -> None:
    """Whoever seals goes on to tell webhooks of it; should he die, others do with their next round."""
    if await services.audit_sealer.seal_all():
        webhooks_due.set()


async def rotate_and_reload_keys(services: CoreServices) -> None:
    await services.key_rotation.rotate_due(origin=SERVICE_ORIGIN)
    await services.keyring.reload()


async def reload_keys_on_notice(services: CoreServices, keys_changed: asyncio.Event) -> None:
    """Another node changed the keys, or notices were missed because the database was away."""
    while True:
        await keys_changed.wait()
        keys_changed.clear()
        await run_job(services.keyring.reload)
        await run_job(lambda: check_promotion(services))


async def run_on_event(job: Callable[[], Awaitable[object]], event: asyncio.Event) -> None:
    while True:
        await event.wait()
        event.clear()
        await run_job(job)


async def delete_expired(services: CoreServices) -> None:
    """Remove what has ended; nothing relies on it, for every reader looks at the time itself (faults I15)."""
    now = services.clock.now()
    await services.storage.sweep(now)
    if services.settings.audit.retention_days:
        await services.audit_retention.delete_before(now - services.settings.audit.retention_days * DAY)
