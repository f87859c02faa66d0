"""R-27: a mail server that is down or hangs only delays mail."""

import asyncio

from gatehouse.mail.outbox import OutboxWorker
from gatehouse.storage.database import Storage
from tests.support.clock import MovableClock
from tests.support.keys import master_keys
from tests.support.mail import Mailbox, composed_mail, mail_server, refusing_port, silent_server, smtp_transport_to
from tests.support.service import RunningService

SHORT_TIMEOUT = 0.3  # seconds of real time, because the server has no clock to advance


def outbox_worker_to(
    port: int, storage: Storage, clock: MovableClock, *, timeout: float = SHORT_TIMEOUT
) -> OutboxWorker:
    carrier = smtp_transport_to(port, timeout=timeout)
    return OutboxWorker(store=storage.mail, find_transport=lambda: carrier, sealer=master_keys(), clock=clock)


async def test_r_27_requests_are_answered_and_mail_is_queued_while_the_server_hangs(service: RunningService) -> None:
    storage, clock, accepted = service.services.storage, service.clock, asyncio.Event()
    await storage.mail.queue_mails([composed_mail(clock)], "")
    async with silent_server(accepted) as port:
        hanging = asyncio.create_task(outbox_worker_to(port, storage, clock, timeout=60).run_once())
        await accepted.wait()
        assert (await service.client.get("/healthz")).status_code == 200
        await storage.mail.queue_mails([composed_mail(clock)], "")
        assert (await storage.mail.outbox_status()).waiting == 2
        assert not hanging.done()
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)


async def test_r_27_a_server_that_never_answers_is_left_and_the_mail_waits(
    storage: Storage, clock: MovableClock
) -> None:
    await storage.mail.queue_mails([composed_mail(clock)], "")
    async with silent_server(asyncio.Event()) as port:
        await outbox_worker_to(port, storage, clock).run_once()
    outstanding = await storage.mail.outbox_status()
    assert outstanding.waiting == 1
    assert "127.0.0.1" in outstanding.trouble


async def test_r_27_a_server_that_falls_silent_in_the_middle_is_left_and_the_mail_waits(
    storage: Storage, clock: MovableClock
) -> None:
    class HangingMailbox(Mailbox):
        async def handle_DATA(self, *_: object) -> str:  # type: ignore[override]  # noqa: N802
            await asyncio.Event().wait()
            return "250 OK"

    await storage.mail.queue_mails([composed_mail(clock)], "")
    async with mail_server(HangingMailbox()) as port:
        await outbox_worker_to(port, storage, clock).run_once()
    assert (await storage.mail.outbox_status()).trouble == "timeout"


async def test_r_27_a_server_that_refuses_gets_the_mail_when_it_is_back(
    storage: Storage, clock: MovableClock, mailbox: Mailbox
) -> None:
    await storage.mail.queue_mails([composed_mail(clock), composed_mail(clock)], "")
    mailbox.port = refusing_port()
    outbox_worker = outbox_worker_to(mailbox.port, storage, clock, timeout=5)
    await outbox_worker.run_once()
    assert (await storage.mail.outbox_status()).waiting == 2
    async with mail_server(mailbox):
        await outbox_worker.run_once()
        assert mailbox.taken == [], "no retry before its time"
        await clock.advance(60)
        await outbox_worker.run_once()
    assert len(mailbox.taken) == 2
    assert (await storage.mail.outbox_status()).waiting == 0


async def test_r_27_of_two_nodes_one_delivers_each_mail(
    storage: Storage, clock: MovableClock, mailbox: Mailbox
) -> None:
    mails = [composed_mail(clock) for _ in range(15)]
    await storage.mail.queue_mails(mails, "")
    async with mail_server(mailbox) as port:
        await asyncio.gather(*(outbox_worker_to(port, storage, clock, timeout=5).run_once() for _ in range(2)))
    assert len(mailbox.taken) == len({message["Message-ID"] for message in mailbox.taken}) == 15


async def test_r_27_a_mail_whose_node_died_is_delivered_by_another(
    storage: Storage, clock: MovableClock, mailbox: Mailbox
) -> None:
    await storage.mail.queue_mails([composed_mail(clock)], "")
    accepted = asyncio.Event()
    async with silent_server(accepted) as port:
        dying = asyncio.create_task(outbox_worker_to(port, storage, clock, timeout=60).run_once())
        await accepted.wait()
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
    async with mail_server(mailbox) as port:
        await outbox_worker_to(port, storage, clock, timeout=5).run_once()
        assert mailbox.taken == [], "the lease is still valid"
        await clock.advance(3_600)
        await outbox_worker_to(port, storage, clock, timeout=5).run_once()
    assert len(mailbox.taken) == 1
