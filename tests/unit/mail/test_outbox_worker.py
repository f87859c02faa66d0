"""A mail is sent, retried or given up; never lost, and never sent too early."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from gatehouse.mail.delivery import DeliverySession, MailTransport, PrintingTransport
from gatehouse.mail.model import (
    MailTemplate,
    Message,
    OutboxMail,
    OutboxStatus,
    RecipientRefused,
    ServerUnusable,
    Undelivered,
)
from gatehouse.mail.outbox import BATCH_SIZE, FIRST_DELAY, GIVE_UP_AFTER, OutboxWorker, retry_delay
from tests.support.clock import MovableClock
from tests.support.keys import master_keys
from tests.support.mail import TO, OutboxInMemory, QueuedMail, a_mail, composed_mail

Reply = Callable[[OutboxMail], Exception | None]


class Server:
    """A transport with a result per mail that the test chooses."""

    timeout = 20.0

    def __init__(self, reply: Reply = lambda _: None, *, connect_error: Exception | None = None) -> None:
        self.reply = reply
        self.connect_error = connect_error
        self.tried: list[str] = []
        self.taken: list[Message] = []
        self.rounds = 0

    @asynccontextmanager
    async def open_session(self) -> AsyncIterator[DeliverySession]:
        self.rounds += 1
        if self.connect_error is not None:
            raise self.connect_error
        yield self

    async def deliver(self, mail: OutboxMail, content: Message) -> None:
        self.tried.append(mail.mail_id)
        trouble = self.reply(mail)
        if trouble is not None:
            raise trouble
        self.taken.append(content)


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


def outbox_worker(store: OutboxInMemory, carrier: MailTransport | None, clock: MovableClock) -> OutboxWorker:
    return OutboxWorker(store=store, find_transport=lambda: carrier, sealer=master_keys(), clock=clock)


def only_mail(store: OutboxInMemory) -> QueuedMail:
    [mail] = store.queued.values()
    return mail


async def test_a_mail_that_was_taken_is_gone(clock: MovableClock) -> None:
    store, server = OutboxInMemory(composed_mail(clock)), Server()
    await outbox_worker(store, server, clock).run_once()
    assert [message.to for message in server.taken] == [TO]
    assert store.queued == {}


async def test_everything_that_is_due_goes_in_rounds_of_one_connection_each(clock: MovableClock) -> None:
    store, server = OutboxInMemory(*(composed_mail(clock) for _ in range(2 * BATCH_SIZE + 3))), Server()
    await outbox_worker(store, server, clock).run_once()
    assert store.queued == {}
    assert server.rounds == 3


async def test_an_empty_outbox_disturbs_no_server(clock: MovableClock) -> None:
    server = Server()
    await outbox_worker(OutboxInMemory(), server, clock).run_once()
    assert server.rounds == 0


async def test_a_mail_that_was_not_taken_is_tried_again_after_a_growing_delay(clock: MovableClock) -> None:
    store, server = OutboxInMemory(composed_mail(clock)), Server(lambda _: Undelivered("451 greylisted"))
    waits = []
    for _ in range(9):
        await outbox_worker(store, server, clock).run_once()
        waits.append(only_mail(store).next_try_at - clock.now())
        await clock.advance(waits[-1])
    assert waits == [60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]
    assert only_mail(store).trouble == "451 greylisted"
    server.reply = lambda _: None
    await outbox_worker(store, server, clock).run_once()
    assert store.queued == {}


async def test_a_mail_is_not_tried_before_its_time(clock: MovableClock) -> None:
    store, server = OutboxInMemory(composed_mail(clock)), Server(lambda _: Undelivered("451"))
    await outbox_worker(store, server, clock).run_once()
    await clock.advance(FIRST_DELAY - 1)
    await outbox_worker(store, server, clock).run_once()
    assert len(server.tried) == 1


async def test_a_mail_is_given_up_after_three_days_and_kept_with_its_trouble(clock: MovableClock) -> None:
    store, server = OutboxInMemory(composed_mail(clock)), Server(lambda _: Undelivered("451 greylisted"))
    while (await store.outbox_status()).waiting:
        await outbox_worker(store, server, clock).run_once()
        await clock.advance(3_600)
    assert await store.outbox_status() == OutboxStatus(waiting=0, given_up=1, oldest_at=0, trouble="")
    assert only_mail(store).trouble == "451 greylisted"
    assert GIVE_UP_AFTER - 3 * 3_600 < clock.now() - only_mail(store).mail.created_at <= GIVE_UP_AFTER + 3_600


async def test_a_recipient_refused_for_good_is_not_tried_again(clock: MovableClock) -> None:
    store, server = OutboxInMemory(composed_mail(clock)), Server(lambda _: RecipientRefused("550 no such mailbox"))
    await outbox_worker(store, server, clock).run_once()
    await clock.advance(GIVE_UP_AFTER)
    await outbox_worker(store, server, clock).run_once()
    assert len(server.tried) == 1
    assert (only_mail(store).next_try_at, only_mail(store).trouble) == (0, "550 no such mailbox")


async def test_refused_message_does_not_delay_the_others(clock: MovableClock) -> None:
    bad = composed_mail(clock, to="no_one@studio.example")
    store = OutboxInMemory(composed_mail(clock), bad, composed_mail(clock))
    refusing = Server(lambda mail: RecipientRefused("550") if mail.mail_id == bad.mail_id else None)
    await outbox_worker(store, refusing, clock).run_once()
    assert only_mail(store).mail == bad
    assert refusing.rounds == 1


async def test_a_server_that_lets_no_one_in_is_asked_once_and_everybody_waits_longer(clock: MovableClock) -> None:
    store = OutboxInMemory(*(composed_mail(clock) for _ in range(BATCH_SIZE + 1)))
    server = Server(connect_error=ServerUnusable("connection refused"))
    await outbox_worker(store, server, clock).run_once()
    assert server.rounds == 1
    await clock.advance(60)
    await outbox_worker(store, server, clock).run_once()
    due = sorted(mail.next_try_at - clock.now() for mail in store.queued.values())
    assert server.rounds == 2
    assert due == [0, 60, *[120] * (BATCH_SIZE - 1)], "one of the first round, the remaining one, the retries"


async def test_a_mail_that_breaks_the_connection_does_not_starve_its_companions(clock: MovableClock) -> None:
    poison = composed_mail(clock)
    store = OutboxInMemory(poison, *(composed_mail(clock) for _ in range(3)))
    server = Server(lambda mail: ServerUnusable("connection lost") if mail.mail_id == poison.mail_id else None)
    await outbox_worker(store, server, clock).run_once()
    assert server.tried == [poison.mail_id], "after a broken connection nothing else is sent"
    for _ in range(2):
        await clock.advance(60)
        await outbox_worker(store, server, clock).run_once()
    assert only_mail(store).mail == poison


async def test_mail_stays_in_the_outbox_without_a_transport(clock: MovableClock) -> None:
    store = OutboxInMemory(composed_mail(clock))
    await outbox_worker(store, None, clock).run_once()
    assert (only_mail(store).tries, store.leases) == (0, [])
    with pytest.raises(ServerUnusable, match=r"set mail\.host"):
        await outbox_worker(store, None, clock).deliver_now(composed_mail(clock))


async def test_message_older_than_the_limit_is_not_sent(clock: MovableClock) -> None:
    store, server = OutboxInMemory(composed_mail(clock)), Server()
    await clock.advance(GIVE_UP_AFTER + 1)
    await outbox_worker(store, server, clock).run_once()
    assert server.taken == []
    assert (only_mail(store).next_try_at, only_mail(store).trouble) == (0, "too old")


async def test_a_mail_that_does_not_open_is_put_off_and_the_others_go(clock: MovableClock) -> None:
    good, damaged = composed_mail(clock), a_mail(sealed=b"\x01" + bytes(200))
    moved = replace(good, mail_id="somewhere else")
    store, server = OutboxInMemory(damaged, moved, good), Server()
    await outbox_worker(store, server, clock).run_once()
    assert len(server.taken) == 1
    assert set(store.queued) == {damaged.mail_id, moved.mail_id}
    assert store.queued[moved.mail_id].trouble == "A stored secret is damaged."


async def test_a_lease_outlasts_the_slowest_round(clock: MovableClock) -> None:
    store, server = OutboxInMemory(composed_mail(clock)), Server()
    await outbox_worker(store, server, clock).run_once()
    assert min(store.leases) > server.timeout * (BATCH_SIZE + 2)


async def test_a_mail_can_be_delivered_past_the_outbox_and_its_trouble_is_told(clock: MovableClock) -> None:
    store, server = OutboxInMemory(), Server()
    await outbox_worker(store, server, clock).deliver_now(composed_mail(clock, MailTemplate.TEST))
    assert len(server.taken) == 1
    server.reply = lambda _: RecipientRefused("550 no such mailbox")
    with pytest.raises(RecipientRefused, match="550 no such mailbox"):
        await outbox_worker(store, server, clock).deliver_now(composed_mail(clock, MailTemplate.TEST))


async def test_development_mail_is_printed_and_deleted(clock: MovableClock) -> None:
    printed: list[str] = []
    store = OutboxInMemory(composed_mail(clock, MailTemplate.RESET))
    await outbox_worker(store, PrintingTransport(printed.append), clock).run_once()
    assert store.queued == {}
    assert f"to {TO}: Reset your password" in printed[0]
    assert "https://login.studio.example/reset?token=" in printed[0]


def test_the_delay_never_exceeds_an_hour() -> None:
    assert [retry_delay(tries) for tries in (1, 2, 6, 7, 1_000)] == [60, 120, 1_920, 3_600, 3_600]
