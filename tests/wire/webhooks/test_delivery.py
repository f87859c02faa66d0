"""Webhook delivery: events are sent once sealed, retried, given up, disabled, sent again."""

import asyncio
import base64
import hashlib
import hmac
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import delete
from structlog.testing import capture_logs

from gatehouse.app.housekeeping import housekeeping
from gatehouse.outbound.client import OutboundClient, SystemResolver, TcpConnector
from gatehouse.storage import webhooks as storage
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import audit_seals
from gatehouse.storage.webhooks import WebhookStorage
from gatehouse.webhooks import delivery
from gatehouse.webhooks.delivery import MAX_CONCURRENT_PER_WEBHOOK, AuditLogConsumer, DeliveryWorker
from gatehouse.webhooks.model import PING_EVENT
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.stub_server import (
    NO_CONTENT,
    ReceivedRequest,
    StubConnector,
    StubResolver,
    StubServer,
    http_response,
    run_stub_server,
)
from tests.support.studio import create_administrator
from tests.wire.webhooks.conftest import OPERATOR, WebhookSetup

BUSY = http_response(b"no", "503 Service Unavailable")
GONE = http_response(b"", "410 Gone")
DAY = 86_400


def is_signed(received: ReceivedRequest, secret: str) -> bool:
    """Verify the signature as the Standard Webhooks specification says, without our own code."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    head = f"{received.headers['webhook-id']}.{received.headers['webhook-timestamp']}."
    expected = base64.b64encode(hmac.new(key, head.encode() + received.body, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in received.headers["webhook-signature"].split(" ")


def received_events(receiver: StubServer) -> list[tuple[str, str]]:
    """Type and subject of the received events."""
    messages = [json.loads(received.body) for received in receiver.received]
    return [(message["type"], message["data"]["subject"]) for message in messages]


def event_after_calls(receiver: StubServer, count: int) -> asyncio.Event:
    """An event that is set once the receiver has got this many calls."""
    reached = asyncio.Event()

    def reply(_: ReceivedRequest) -> bytes:
        if len(receiver.received) >= count:
            reached.set()
        return NO_CONTENT

    receiver.respond = reply
    return reached


async def test_an_event_arrives_signed_once_for_each_webhook_that_wants_it(webhook_setup: WebhookSetup) -> None:
    before = await webhook_setup.create_user("before@studio.example")
    hook = await webhook_setup.create_webhook("account", description="CRM")
    await webhook_setup.create_webhook("session", "permission")
    anna = await webhook_setup.create_user()
    services = webhook_setup.service.services
    assert await services.storage.webhooks.due_webhooks(webhook_setup.service.clock.now()) == []
    await services.webhooks.deliveries.run_once()
    assert webhook_setup.receiver.received == []  # it is committed, and not sealed
    await webhook_setup.deliver_once()
    await webhook_setup.deliver_once()
    [received] = webhook_setup.receiver.received
    assert (received.line, received.headers["content-type"]) == ("POST /events HTTP/1.1", "application/json")
    assert is_signed(received, hook["secret"])
    [record] = await services.storage.audit.newest_records(1, anna.user_id, "")
    assert json.loads(received.body) == {
        "id": record.record_id,
        "type": "user.created",
        "timestamp": "2027-01-15T08:00:00Z",
        "data": {
            "topic": "account",
            "subject": anna.user_id,
            "actor": "cli",
            "details": {"administrator": False},
        },
    }
    assert received.headers["webhook-id"] == record.record_id
    assert received.headers["webhook-timestamp"] == str(webhook_setup.service.clock.now())
    assert before.user_id not in str(received_events(webhook_setup.receiver))
    [entry] = await webhook_setup.delivery_log(hook)
    assert (entry["event_id"], entry["event"]) == (record.record_id, "user.created")
    assert (entry["state"], entry["tries"], entry["status"], entry["trouble"]) == ("delivered", 1, 204, "")


async def test_a_serving_process_tells_of_what_it_seals_without_being_asked(webhook_setup: WebhookSetup) -> None:
    await webhook_setup.create_webhook("account")
    arrived = event_after_calls(webhook_setup.receiver, 1)
    async with housekeeping(webhook_setup.service.services):
        anna = await webhook_setup.create_user()
        await webhook_setup.service.clock.advance(0.5)
        await asyncio.wait_for(arrived.wait(), 10)
    assert received_events(webhook_setup.receiver) == [("user.created", anna.user_id)]


async def test_delivery_contains_no_personal_secret_or_free_text_data(webhook_setup: WebhookSetup) -> None:
    await webhook_setup.create_webhook("account", "session", "permission")
    anna = await webhook_setup.create_user()
    studio = webhook_setup.studio
    changed = {"application_id": studio.shop.application_id, "description": "of uncle Bob", "name": "Bobs shop"}
    await studio.expect_ok("application", {"action": "save", "data": changed}, studio.owner.headers)
    tags = {"data": {"user_id": anna.user_id, "tags": ["diabetic"]}}
    await studio.expect_ok("user/tags", tags, webhook_setup.admin.headers)
    await webhook_setup.service.services.accounts.administration.block(anna.user_id, OPERATOR)
    await webhook_setup.deliver_once()
    events = {event for event, _ in received_events(webhook_setup.receiver)}
    assert events == {"user.created", "application.changed", "user.tags_saved", "user.blocked"}
    sent = b"\n".join(received.body for received in webhook_setup.receiver.received).decode()
    for text in ("anna@studio.example", "Anna", "127.0.0.1", "uncle", "Bob", "diabetic", "salt", "root", "10.9.8.7"):
        assert text not in sent, text
    assert tables_that_mention(await read_all_tables(webhook_setup.service.services.storage), "whsec_") == set()


async def test_failed_delivery_is_retried_with_backoff_same_id_and_new_signature(
    webhook_setup: WebhookSetup,
) -> None:
    hook = await webhook_setup.create_webhook()
    webhook_setup.receiver.respond = lambda _: BUSY
    await webhook_setup.create_user()
    for tries, delay in ((1, 15), (2, 30), (3, 60)):
        await webhook_setup.deliver_once()
        assert len(webhook_setup.receiver.received) == tries
        [entry] = await webhook_setup.delivery_log(hook, state="waiting")
        assert (entry["tries"], entry["status"], entry["trouble"]) == (tries, 503, "answered 503")
        await webhook_setup.service.clock.advance(delay - 1)
        await webhook_setup.deliver_once()
        assert len(webhook_setup.receiver.received) == tries
        await webhook_setup.service.clock.advance(1)
    webhook_setup.receiver.respond = lambda _: http_response(b"x" * 70_000)  # more than is read of a response
    await webhook_setup.deliver_once()
    [entry] = await webhook_setup.delivery_log(hook)
    assert (entry["status"], entry["trouble"]) == (0, "The response is too large.")
    await webhook_setup.service.clock.advance(120)
    webhook_setup.receiver.respond = lambda _: NO_CONTENT
    await webhook_setup.deliver_once()
    assert (await webhook_setup.delivery_log(hook))[0]["state"] == "delivered"
    assert len({received.headers["webhook-id"] for received in webhook_setup.receiver.received}) == 1
    assert len({received.body for received in webhook_setup.receiver.received}) == 1
    times = [int(received.headers["webhook-timestamp"]) for received in webhook_setup.receiver.received]
    assert [later - earlier for earlier, later in pairwise(times)] == [15, 30, 60, 120]
    assert all(is_signed(received, hook["secret"]) for received in webhook_setup.receiver.received)


@pytest.mark.both_databases
async def test_delivery_is_abandoned_after_a_day_and_repeated_failures_stop_the_webhook(
    webhook_setup: WebhookSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_CONSECUTIVE_FAILURES", 3)
    hook = await webhook_setup.create_webhook()
    for batch in ("first", "second"):
        webhook_setup.receiver.respond = lambda _: BUSY
        for number in range(2):
            await webhook_setup.create_user(f"{batch}{number}@studio.example")
            await webhook_setup.ask("test", webhook_id=hook["webhook_id"])  # not counted
        await pass_a_day(webhook_setup)
        assert await webhook_setup.delivery_log(hook, state="waiting") == []
        webhook_setup.receiver.respond = lambda _: NO_CONTENT
        await webhook_setup.create_user(f"{batch}@studio.example")  # delivered: the count starts again
        await webhook_setup.deliver_once()
        assert (await webhook_setup.ask("get"))[0]["enabled"]
    tries = {
        entry["tries"]
        for entry in await webhook_setup.delivery_log(hook, state="given_up")
        if entry["event"] != PING_EVENT
    }
    assert all(10 < count < 20 for count in tries)
    webhook_setup.receiver.respond = lambda _: BUSY
    for number in range(3):
        await webhook_setup.create_user(f"third{number}@studio.example")
    await pass_a_day(webhook_setup)
    [stopped] = await webhook_setup.ask("get", webhook_id=hook["webhook_id"])
    assert (stopped["enabled"], stopped["version"]) == (False, 2)
    assert stopped["stopped"].startswith("2027-01-1")
    subject = f"webhook {hook['webhook_id']}"
    events = [
        record.event for record in await webhook_setup.service.services.storage.audit.newest_records(9, subject, "")
    ]
    assert events.count("webhook.stopped") == 1
    # Events of that time wait in the audit log.
    late = await webhook_setup.create_user("late@studio.example")
    webhook_setup.receiver.received.clear()
    webhook_setup.receiver.respond = lambda _: NO_CONTENT
    await webhook_setup.deliver_once()
    assert webhook_setup.receiver.received == []
    await webhook_setup.ask("save", webhook_id=hook["webhook_id"], enabled=True, version=2)
    await webhook_setup.deliver_once()
    assert received_events(webhook_setup.receiver) == [("user.created", late.user_id)]
    assert "stopped" not in (await webhook_setup.ask("get"))[0]


async def pass_a_day(webhook_setup: WebhookSetup) -> None:
    for _ in range(30):
        await webhook_setup.deliver_once()
        await webhook_setup.service.clock.advance(3_600)


async def test_a_receiver_that_says_gone_is_stopped_at_once(webhook_setup: WebhookSetup) -> None:
    hook = await webhook_setup.create_webhook()
    webhook_setup.receiver.respond = lambda _: GONE
    await webhook_setup.create_user()
    await webhook_setup.deliver_once()
    assert not (await webhook_setup.ask("get"))[0]["enabled"]
    assert [entry["state"] for entry in await webhook_setup.delivery_log(hook)] == ["given_up"]


async def test_r_27_a_receiver_that_never_answers_holds_up_no_other(webhook_setup: WebhookSetup) -> None:
    async with run_stub_server(StubServer(pause=asyncio.get_running_loop().create_future)) as dead:
        await webhook_setup.create_webhook(url=f"http://127.0.0.1:{dead.port}/")
        await webhook_setup.create_webhook()
        services = webhook_setup.service.services
        for expected in (6, 7):  # more than a worker takes at once, and then one more
            arrived = event_after_calls(webhook_setup.receiver, expected)
            for number in range(expected - len(webhook_setup.receiver.received)):
                await webhook_setup.create_user(f"one{expected}{number}@studio.example")
            await services.audit.sealer.seal_all()
            await services.webhooks.deliveries.start_due()
            await asyncio.wait_for(arrived.wait(), 10)
        assert dead.max_open_connections == MAX_CONCURRENT_PER_WEBHOOK
        await services.webhooks.deliveries.stop()


class CrashingStorage(WebhookStorage):
    """A node that dies after the receiver has responded."""

    async def mark_delivered(self, *_: object) -> None:
        pass


def another_node(webhook_setup: WebhookSetup, store: WebhookStorage | None = None, **parts: Any) -> DeliveryWorker:
    services = webhook_setup.service.services
    usual = {
        "store": store or services.storage.webhooks,
        "consumer": AuditLogConsumer(
            store=services.storage.webhooks, log=services.storage.audit, clock=services.clock
        ),
        "poster": OutboundClient(
            allowed=services.settings.outbound.allow, resolver=SystemResolver(), connector=TcpConnector()
        ),
        "secret_opener": services.core.masters,
        "recorder": services.core.recorder,
        "clock": services.clock,
    }
    return DeliveryWorker(**{**usual, **parts})


async def test_a_node_that_dies_between_sending_and_marking_is_followed_by_one_that_sends_again(
    webhook_setup: WebhookSetup,
) -> None:
    hook = await webhook_setup.create_webhook()
    await webhook_setup.create_user()
    services = webhook_setup.service.services
    await services.audit.sealer.seal_all()
    await another_node(webhook_setup, CrashingStorage(services.storage.runner)).run_once()
    await webhook_setup.deliver_once()
    assert len(webhook_setup.receiver.received) == 1  # the dead node has claimed it
    await webhook_setup.service.clock.advance(60)
    await webhook_setup.deliver_once()
    first, second = webhook_setup.receiver.received
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    [entry] = await webhook_setup.delivery_log(hook)
    assert (entry["state"], entry["tries"]) == ("delivered", 2)


async def test_each_delivery_is_made_by_one_of_several_nodes(
    webhook_setup: WebhookSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "RECORD_BATCH", 3)
    hook = await webhook_setup.create_webhook()
    everybody = [(await webhook_setup.create_user(f"one{number}@studio.example")).user_id for number in range(10)]
    await webhook_setup.service.services.audit.sealer.seal_all()
    await asyncio.gather(*(another_node(webhook_setup).run_once() for _ in range(3)))
    await webhook_setup.deliver_once()
    assert sorted(received_events(webhook_setup.receiver)) == sorted(
        ("user.created", user_id) for user_id in everybody
    )
    assert [entry["tries"] for entry in await webhook_setup.delivery_log(hook)] == [1] * 10


async def test_a_name_that_leads_inside_is_not_called_and_the_log_does_not_tell_where_it_leads(
    webhook_setup: WebhookSetup,
) -> None:
    """AP-08 for webhooks: an administrator chooses the name, so its address is not trusted."""
    hook = await webhook_setup.create_webhook(url="https://inside.example/")
    await webhook_setup.create_user()
    await webhook_setup.service.services.audit.sealer.seal_all()
    wire = StubConnector()
    for tries, console_browsers in enumerate(["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1"], 1):
        poster = OutboundClient(
            allowed=(), resolver=StubResolver(inside_example=[[console_browsers]]), connector=wire
        )
        await another_node(webhook_setup, poster=poster).run_once()
        [entry] = await webhook_setup.delivery_log(hook)
        assert (entry["state"], entry["tries"]) == ("waiting", tries)
        assert entry["trouble"] == "This URL is not allowed."
        await webhook_setup.service.clock.advance(3_600)
    assert wire.connected == []


@pytest.mark.both_databases
async def test_redelivering_sends_the_same_event_and_a_test_sends_a_ping_once(webhook_setup: WebhookSetup) -> None:
    hook = await webhook_setup.create_webhook()
    anna = await webhook_setup.create_user()
    await webhook_setup.deliver_once()
    [entry] = await webhook_setup.delivery_log(hook)
    again = await webhook_setup.ask("redeliver", webhook_id=hook["webhook_id"], delivery_id=entry["delivery_id"])
    assert (again["event_id"], again["state"]) == (entry["event_id"], "waiting")
    await webhook_setup.deliver_once()
    first, second = webhook_setup.receiver.received
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    # A waiting delivery becomes due immediately and is not duplicated.
    webhook_setup.receiver.respond = lambda _: BUSY
    await webhook_setup.create_user("bob@studio.example")
    await webhook_setup.deliver_once()
    [waiting] = await webhook_setup.delivery_log(hook, state="waiting")
    await webhook_setup.ask("redeliver", webhook_id=hook["webhook_id"], delivery_id=waiting["delivery_id"])
    await webhook_setup.deliver_once()
    assert len(webhook_setup.receiver.received) == 4
    # A ping is also sent to a disabled webhook, and is not retried.
    await webhook_setup.ask("save", webhook_id=hook["webhook_id"], enabled=False)
    ping = await webhook_setup.ask("test", webhook_id=hook["webhook_id"])
    await webhook_setup.deliver_once()
    await webhook_setup.service.clock.advance(DAY)
    await webhook_setup.deliver_once()
    message = json.loads(webhook_setup.receiver.received[-1].body)
    assert (message["type"], message["id"], len(webhook_setup.receiver.received)) == (
        "webhook.ping",
        ping["event_id"],
        5,
    )
    assert [one["event"] for one in await webhook_setup.delivery_log(hook, state="given_up")] == ["webhook.ping"]
    assert anna.user_id not in str(message)


@pytest.mark.both_databases
async def test_events_of_a_disabled_webhook_are_delivered_later_unless_skipped(
    webhook_setup: WebhookSetup,
) -> None:
    hook = await webhook_setup.create_webhook()
    for from_now in (False, True):
        await webhook_setup.ask("save", webhook_id=hook["webhook_id"], enabled=False)
        await webhook_setup.create_user(f"while{from_now}@studio.example")
        await webhook_setup.deliver_once()
        await webhook_setup.ask("save", webhook_id=hook["webhook_id"], enabled=True, from_now=from_now)
        await webhook_setup.deliver_once()
        assert len(webhook_setup.receiver.received) == 1


async def test_a_dead_receivers_backlog_has_a_bound_and_comes_in_the_order_of_the_log(
    webhook_setup: WebhookSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MAX_WAITING_DELIVERIES", 3)
    monkeypatch.setattr(delivery, "RECORD_BATCH", 2)
    monkeypatch.setattr(delivery, "MAX_CONCURRENT_PER_WEBHOOK", 1)
    hook = await webhook_setup.create_webhook()
    webhook_setup.receiver.respond = lambda _: BUSY
    everybody = []
    for number in range(9):
        await webhook_setup.service.clock.advance(1)
        everybody.append((await webhook_setup.create_user(f"one{number}@studio.example")).user_id)
    await webhook_setup.deliver_once()
    assert len(await webhook_setup.delivery_log(hook)) == 3
    webhook_setup.receiver.respond = lambda _: NO_CONTENT
    webhook_setup.receiver.received.clear()
    await webhook_setup.service.clock.advance(15)
    await webhook_setup.deliver_once()
    assert [subject for _, subject in received_events(webhook_setup.receiver)] == everybody


async def test_the_log_is_swept_and_a_secret_that_has_ended_is_forgotten(
    webhook_setup: WebhookSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MAX_LOGGED_DELIVERIES", 2)
    hook = await webhook_setup.create_webhook()
    await webhook_setup.ask("rotate", webhook_id=hook["webhook_id"])
    services = webhook_setup.service.services
    for number in range(3):
        await webhook_setup.create_user(f"one{number}@studio.example")
        await webhook_setup.deliver_once()
        await webhook_setup.service.clock.advance(1)
    newest = (await webhook_setup.delivery_log(hook))[:2]
    await services.storage.sweep(webhook_setup.service.clock.now())
    assert await webhook_setup.delivery_log(hook) == newest
    assert (await webhook_setup.ask("get"))[0]["old_secret_until"] == "2027-01-22T08:00:00Z"
    await webhook_setup.service.clock.advance(31 * DAY)
    await services.storage.sweep(webhook_setup.service.clock.now())
    admin = await with_new_administrator(webhook_setup)
    assert (await admin.delivery_log(hook), "old_secret_until" in (await admin.ask("get"))[0]) == ([], False)


async def with_new_administrator(webhook_setup: WebhookSetup) -> WebhookSetup:
    return replace(webhook_setup, admin=await create_administrator(webhook_setup.studio))


async def test_the_head_of_the_audit_log_is_sent_and_logged_once_an_hour_when_it_moved(
    webhook_setup: WebhookSetup,
) -> None:
    services = webhook_setup.service.services
    hook = await webhook_setup.create_webhook("audit")
    await webhook_setup.create_webhook("account", url=f"{webhook_setup.url}/other")
    await webhook_setup.create_user()
    await services.audit.sealer.seal_all()
    with capture_logs() as logs:
        await asyncio.gather(*(services.webhooks.head_publisher.run_once() for _ in range(3)))  # like several nodes
    await webhook_setup.deliver_once()
    heads = heads_in(webhook_setup.receiver)
    assert [line["head"] for line in logs if line["event"] == "audit.head"] == heads
    assert (await services.audit.make_verifier().verify(services.audit.head_exporter.parse_all(heads[0]))).records > 0
    assert (await webhook_setup.delivery_log(hook))[0]["event"] == "audit.head"

    for minutes, moves, count in ((59, True, 1), (2, False, 2), (61, False, 2), (0, True, 3)):
        if moves:
            await webhook_setup.create_user(f"user{minutes}@studio.example")
        await webhook_setup.service.clock.advance(minutes * 60)
        await services.audit.sealer.seal_all()
        await services.webhooks.head_publisher.run_once()
        await webhook_setup.deliver_once()
        assert len(heads_in(webhook_setup.receiver)) == count


def heads_in(receiver: StubServer) -> list[str]:
    messages = [json.loads(received.body) for received in receiver.received if " /events " in received.line]
    return [message["data"]["details"]["head"] for message in messages if message["type"] == "audit.head"]


def cut_seals() -> Verb[None]:
    yield Statement(lambda: delete(audit_seals))()


async def test_a_broken_audit_log_is_told_to_anyone_who_listens_to_it(webhook_setup: WebhookSetup) -> None:
    await webhook_setup.create_webhook("audit")
    await webhook_setup.service.services.storage.runner.write(cut_seals)
    await webhook_setup.create_user()
    await webhook_setup.deliver_once()
    [message] = [json.loads(received.body) for received in webhook_setup.receiver.received]
    assert message["type"] == "audit.broken"
    assert (message["data"]["details"]["sealed"], message["data"]["topic"]) == (0, "audit")
