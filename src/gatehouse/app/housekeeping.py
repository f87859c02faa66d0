"""What a serving process does by itself: seals the audit log, rotates keys, forgets what has ended."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import structlog

from gatehouse.app.house import DAY, SERVICE_ORIGIN, Services, check_promotion
from gatehouse.kernel.errors import GatehouseError
from gatehouse.storage.keys import CHANNEL as KEYS_CHANGED
from gatehouse.storage.logout_calls import CHANNEL as SIGNED_OUT
from gatehouse.storage.mail import CHANNEL as MAIL_QUEUED
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
async def housekeeping(house: Services) -> AsyncIterator[None]:
    """Keep house while the body runs; at the end whatever was recorded is sealed."""
    told = asyncio.Event()
    forget = house.storage.runner.listen(KEYS_CHANGED, lambda _: told.set())
    mail = asyncio.Event()
    mail.set()  # what an earlier run left in the outbox
    forget_mail = house.storage.runner.listen(MAIL_QUEUED, lambda _: mail.set())
    data = asyncio.Event()
    data.set()  # what an earlier run, or another node that died, left undone
    forget_data = house.storage.runner.listen(DATA_ASKED, lambda _: data.set())
    logout = asyncio.Event()
    logout.set()
    forget_logout = house.storage.runner.listen(SIGNED_OUT, lambda _: logout.set())
    webhooks = asyncio.Event()
    webhooks.set()
    forget_webhooks = house.storage.runner.listen(WEBHOOK_DUE, lambda _: webhooks.set())
    await check_promotion(house)
    duties = [
        asyncio.create_task(run_every(house, SEAL_EVERY, lambda: seal_audit_log(house, webhooks)), name="seal"),
        asyncio.create_task(run_every(house, HEADS_EVERY, house.head_offers.run_once), name="audit-head"),
        asyncio.create_task(run_every(house, KEYS_EVERY, lambda: rotate_and_reload_keys(house)), name="keys"),
        asyncio.create_task(run_every(house, TALLY_EVERY, house.tally.write), name="tally"),
        asyncio.create_task(run_every(house, SWEEP_EVERY, lambda: delete_expired(house)), name="sweep"),
        asyncio.create_task(run_every(house, MAIL_EVERY, house.postman.run_once), name="retry-mail"),
        asyncio.create_task(run_on_event(house.postman.run_once, mail), name="mail"),
        asyncio.create_task(run_every(house, DATA_EVERY, house.data_errands.run_once), name="retry-data"),
        asyncio.create_task(run_on_event(house.data_errands.run_once, data), name="data"),
        asyncio.create_task(run_every(house, LOGOUT_EVERY, house.backchannel_logout.run_once), name="retry-logout"),
        asyncio.create_task(run_on_event(house.backchannel_logout.run_once, logout), name="logout"),
        asyncio.create_task(run_every(house, WEBHOOKS_EVERY, house.webhook_deliveries.tend), name="retry-webhooks"),
        asyncio.create_task(run_on_event(house.webhook_deliveries.tend, webhooks), name="webhooks"),
        asyncio.create_task(reload_keys_on_notice(house, told), name="look-again"),
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
        await run_job(house.tally.write)
        await house.webhook_deliveries.stop()
        await run_job(house.sealer.seal_all)


async def run_every(house: Services, seconds: float, duty: Callable[[], Awaitable[object]]) -> None:
    while True:
        await house.clock.sleep(seconds)
        await run_job(duty)


async def run_job(duty: Callable[[], Awaitable[object]]) -> None:
    """A duty that fails is told and tried again at its next time; it never ends the service."""
    try:
        await duty()
    except GatehouseError as error:
        log.warning("housekeeping failed", reason=str(error))
    except Exception:
        log.exception("housekeeping failed")


async def seal_audit_log(house: Services, sealed: asyncio.Event) -> None:
    """Whoever seals goes on to tell webhooks of it; should he die, others do with their next round."""
    if await house.sealer.seal_all():
        sealed.set()


async def rotate_and_reload_keys(house: Services) -> None:
    await house.rotation.rotate_due(origin=SERVICE_ORIGIN)
    await house.keyring.reload()


async def reload_keys_on_notice(house: Services, told: asyncio.Event) -> None:
    """Another node changed the keys, or notices were missed because the database was away."""
    while True:
        await told.wait()
        told.clear()
        await run_job(house.keyring.reload)
        await run_job(lambda: check_promotion(house))


async def run_on_event(duty: Callable[[], Awaitable[object]], told: asyncio.Event) -> None:
    while True:
        await told.wait()
        told.clear()
        await run_job(duty)


async def delete_expired(house: Services) -> None:
    """Remove what has ended; nothing relies on it, for every reader looks at the time itself (faults I15)."""
    now = house.clock.now()
    await house.storage.sweep(now)
    if house.settings.audit.retention_days:
        await house.retention.forget_before(now - house.settings.audit.retention_days * DAY)
