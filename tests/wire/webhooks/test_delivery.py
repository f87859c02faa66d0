"""Webhooks from outside: told of what happened, once it is sealed; tried again, given up, stopped, sent once more."""

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
from gatehouse.storage.tables.installation import audit_seals
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
    """Written from the Standard Webhooks page, with nothing of ours."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    head = f"{received.headers['webhook-id']}.{received.headers['webhook-timestamp']}."
    expected = base64.b64encode(hmac.new(key, head.encode() + received.body, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in received.headers["webhook-signature"].split(" ")


def told(receiver: StubServer) -> list[tuple[str, str]]:
    """Type and subject of what arrived."""
    messages = [json.loads(received.body) for received in receiver.received]
    return [(message["type"], message["data"]["subject"]) for message in messages]


def reaching(receiver: StubServer, count: int) -> asyncio.Event:
    """Set once the receiver has got so many."""
    reached = asyncio.Event()

    def say(_: ReceivedRequest) -> bytes:
        if len(receiver.received) >= count:
            reached.set()
        return NO_CONTENT

    receiver.respond = say
    return reached


async def test_an_event_arrives_signed_once_for_each_webhook_that_wants_it(town: WebhookSetup) -> None:
    before = await town.create_user("before@studio.example")
    hook = await town.create_webhook("account", description="CRM")
    await town.create_webhook("session", "permission")
    anna = await town.create_user()
    house = town.service.services
    assert await house.storage.webhooks.due_webhooks(town.service.clock.now()) == []
    await house.webhook_deliveries.run_once()
    assert town.receiver.received == []  # it is committed, and not sealed
    await town.deliver_once()
    await town.deliver_once()
    [received] = town.receiver.received
    assert (received.line, received.headers["content-type"]) == ("POST /events HTTP/1.1", "application/json")
    assert is_signed(received, hook["secret"])
    [record] = await house.storage.audit.newest_records(1, anna.user_id, "")
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
    assert received.headers["webhook-timestamp"] == str(town.service.clock.now())
    assert before.user_id not in str(told(town.receiver))
    [entry] = await town.delivery_log(hook)
    assert (entry["event_id"], entry["event"]) == (record.record_id, "user.created")
    assert (entry["state"], entry["tries"], entry["status"], entry["trouble"]) == ("delivered", 1, 204, "")


async def test_a_serving_process_tells_of_what_it_seals_without_being_asked(town: WebhookSetup) -> None:
    await town.create_webhook("account")
    arrived = reaching(town.receiver, 1)
    async with housekeeping(town.service.services):
        anna = await town.create_user()
        await town.service.clock.advance(0.5)
        await asyncio.wait_for(arrived.wait(), 10)
    assert told(town.receiver) == [("user.created", anna.user_id)]


async def test_nothing_personal_secret_or_written_by_hand_is_in_what_is_sent(town: WebhookSetup) -> None:
    await town.create_webhook("account", "session", "permission")
    anna = await town.create_user()
    studio = town.studio
    changed = {"application_id": studio.shop.application_id, "description": "of uncle Bob", "name": "Bobs shop"}
    await studio.expect_ok("application", {"action": "save", "data": changed}, studio.owner.headers)
    tags = {"data": {"user_id": anna.user_id, "tags": ["diabetic"]}}
    await studio.expect_ok("user/tags", tags, town.admin.headers)
    await town.service.services.administration.block(anna.user_id, OPERATOR)
    await town.deliver_once()
    events = {event for event, _ in told(town.receiver)}
    assert events == {"user.created", "application.changed", "user.tags_saved", "user.blocked"}
    sent = b"\n".join(received.body for received in town.receiver.received).decode()
    for text in ("anna@studio.example", "Anna", "127.0.0.1", "uncle", "Bob", "diabetic", "salt", "root", "10.9.8.7"):
        assert text not in sent, text
    assert tables_that_mention(await read_all_tables(town.service.services.storage), "whsec_") == set()


async def test_one_that_fails_is_tried_later_and_later_with_the_same_id_and_a_new_signature(
    town: WebhookSetup,
) -> None:
    hook = await town.create_webhook()
    town.receiver.respond = lambda _: BUSY
    await town.create_user()
    for tries, delay in ((1, 15), (2, 30), (3, 60)):
        await town.deliver_once()
        assert len(town.receiver.received) == tries
        [entry] = await town.delivery_log(hook, state="waiting")
        assert (entry["tries"], entry["status"], entry["trouble"]) == (tries, 503, "answered 503")
        await town.service.clock.advance(delay - 1)
        await town.deliver_once()
        assert len(town.receiver.received) == tries
        await town.service.clock.advance(1)
    town.receiver.respond = lambda _: http_response(b"x" * 70_000)  # more than is read of an answer
    await town.deliver_once()
    [entry] = await town.delivery_log(hook)
    assert (entry["status"], entry["trouble"]) == (0, "The response is too large.")
    await town.service.clock.advance(120)
    town.receiver.respond = lambda _: NO_CONTENT
    await town.deliver_once()
    assert (await town.delivery_log(hook))[0]["state"] == "delivered"
    assert len({received.headers["webhook-id"] for received in town.receiver.received}) == 1
    assert len({received.body for received in town.receiver.received}) == 1
    times = [int(received.headers["webhook-timestamp"]) for received in town.receiver.received]
    assert [later - earlier for earlier, later in pairwise(times)] == [15, 30, 60, 120]
    assert all(is_signed(received, hook["secret"]) for received in town.receiver.received)


async def test_after_a_day_it_is_given_up_and_after_several_in_a_row_the_webhook_is_stopped_on_record(
    town: WebhookSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_CONSECUTIVE_FAILURES", 3)
    hook = await town.create_webhook()
    for batch in ("first", "second"):
        town.receiver.respond = lambda _: BUSY
        for number in range(2):
            await town.create_user(f"{batch}{number}@studio.example")
            await town.ask("test", webhook_id=hook["webhook_id"])  # not counted
        await pass_a_day(town)
        assert await town.delivery_log(hook, state="waiting") == []
        town.receiver.respond = lambda _: NO_CONTENT
        await town.create_user(f"{batch}@studio.example")  # arrives: it is counted anew
        await town.deliver_once()
        assert (await town.ask("get"))[0]["enabled"]
    tries = {
        entry["tries"] for entry in await town.delivery_log(hook, state="given_up") if entry["event"] != PING_EVENT
    }
    assert all(10 < count < 20 for count in tries)
    town.receiver.respond = lambda _: BUSY
    for number in range(3):
        await town.create_user(f"third{number}@studio.example")
    await pass_a_day(town)
    [stopped] = await town.ask("get", webhook_id=hook["webhook_id"])
    assert (stopped["enabled"], stopped["version"]) == (False, 2)
    assert stopped["stopped"].startswith("2027-01-1")
    subject = f"webhook {hook['webhook_id']}"
    events = [record.event for record in await town.service.services.storage.audit.newest_records(9, subject, "")]
    assert events.count("webhook.stopped") == 1
    # What happens meanwhile waits in the audit log.
    late = await town.create_user("late@studio.example")
    town.receiver.received.clear()
    town.receiver.respond = lambda _: NO_CONTENT
    await town.deliver_once()
    assert town.receiver.received == []
    await town.ask("save", webhook_id=hook["webhook_id"], enabled=True, version=2)
    await town.deliver_once()
    assert told(town.receiver) == [("user.created", late.user_id)]
    assert "stopped" not in (await town.ask("get"))[0]


async def pass_a_day(town: WebhookSetup) -> None:
    for _ in range(30):
        await town.deliver_once()
        await town.service.clock.advance(3_600)


async def test_a_receiver_that_says_gone_is_stopped_at_once(town: WebhookSetup) -> None:
    hook = await town.create_webhook()
    town.receiver.respond = lambda _: GONE
    await town.create_user()
    await town.deliver_once()
    assert not (await town.ask("get"))[0]["enabled"]
    assert [entry["state"] for entry in await town.delivery_log(hook)] == ["given_up"]


async def test_r_27_a_receiver_that_never_answers_holds_up_no_other(town: WebhookSetup) -> None:
    async with run_stub_server(StubServer(pause=asyncio.get_running_loop().create_future)) as dead:
        await town.create_webhook(url=f"http://127.0.0.1:{dead.port}/")
        await town.create_webhook()
        house = town.service.services
        for expected in (6, 7):  # more than a lane takes at once, and then one more
            arrived = reaching(town.receiver, expected)
            for number in range(expected - len(town.receiver.received)):
                await town.create_user(f"one{expected}{number}@studio.example")
            await house.audit_sealer.seal_all()
            await house.webhook_deliveries.start_due()
            await asyncio.wait_for(arrived.wait(), 10)
        assert dead.max_open_connections == MAX_CONCURRENT_PER_WEBHOOK
        await house.webhook_deliveries.stop()


class Forgetful(WebhookStorage):
    """Of a node that dies when the receiver has answered."""

    async def mark_delivered(self, *_: object) -> None:
        pass


def another_node(town: WebhookSetup, store: WebhookStorage | None = None, **parts: Any) -> DeliveryWorker:
    house = town.service.services
    usual = {
        "store": store or house.storage.webhooks,
        "consumer": AuditLogConsumer(store=house.storage.webhooks, log=house.storage.audit, clock=house.clock),
        "poster": OutboundClient(
            allowed=house.settings.outbound.allow, resolver=SystemResolver(), connector=TcpConnector()
        ),
        "secret_opener": house.masters,
        "recorder": house.recorder,
        "clock": house.clock,
    }
    return DeliveryWorker(**{**usual, **parts})


async def test_a_node_that_dies_between_sending_and_marking_is_followed_by_one_that_sends_again(
    town: WebhookSetup,
) -> None:
    hook = await town.create_webhook()
    await town.create_user()
    house = town.service.services
    await house.audit_sealer.seal_all()
    await another_node(town, Forgetful(house.storage.runner)).run_once()
    await town.deliver_once()
    assert len(town.receiver.received) == 1  # the dead one holds it
    await town.service.clock.advance(60)
    await town.deliver_once()
    first, second = town.receiver.received
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    [entry] = await town.delivery_log(hook)
    assert (entry["state"], entry["tries"]) == ("delivered", 2)


async def test_of_several_nodes_one_makes_each_delivery(town: WebhookSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "RECORD_BATCH", 3)
    hook = await town.create_webhook()
    everybody = [(await town.create_user(f"one{number}@studio.example")).user_id for number in range(10)]
    await town.service.services.audit_sealer.seal_all()
    await asyncio.gather(*(another_node(town).run_once() for _ in range(3)))
    await town.deliver_once()
    assert sorted(told(town.receiver)) == sorted(("user.created", user_id) for user_id in everybody)
    assert [entry["tries"] for entry in await town.delivery_log(hook)] == [1] * 10


async def test_a_name_that_leads_inside_is_not_called_and_the_log_does_not_tell_where_it_leads(
    town: WebhookSetup,
) -> None:
    """AP-08 for webhooks: the name is an administrator's choice, where it leads is not ours to trust."""
    hook = await town.create_webhook(url="https://inside.example/")
    await town.create_user()
    await town.service.services.audit_sealer.seal_all()
    wire = StubConnector()
    for tries, inside in enumerate(["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1"], 1):
        poster = OutboundClient(allowed=(), resolver=StubResolver(inside_example=[[inside]]), connector=wire)
        await another_node(town, poster=poster).run_once()
        [entry] = await town.delivery_log(hook)
        assert (entry["state"], entry["tries"]) == ("waiting", tries)
        assert entry["trouble"] == "This URL is not allowed."
        await town.service.clock.advance(3_600)
    assert wire.connected == []


async def test_redelivering_sends_the_same_event_and_a_test_sends_a_ping_once(town: WebhookSetup) -> None:
    hook = await town.create_webhook()
    anna = await town.create_user()
    await town.deliver_once()
    [entry] = await town.delivery_log(hook)
    again = await town.ask("redeliver", webhook_id=hook["webhook_id"], delivery_id=entry["delivery_id"])
    assert (again["event_id"], again["state"]) == (entry["event_id"], "waiting")
    await town.deliver_once()
    first, second = town.receiver.received
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    # One that waits is due at once, and is no second one.
    town.receiver.respond = lambda _: BUSY
    await town.create_user("bob@studio.example")
    await town.deliver_once()
    [waiting] = await town.delivery_log(hook, state="waiting")
    await town.ask("redeliver", webhook_id=hook["webhook_id"], delivery_id=waiting["delivery_id"])
    await town.deliver_once()
    assert len(town.receiver.received) == 4
    # A ping goes to a disabled one too, and is not tried again.
    await town.ask("save", webhook_id=hook["webhook_id"], enabled=False)
    ping = await town.ask("test", webhook_id=hook["webhook_id"])
    await town.deliver_once()
    await town.service.clock.advance(DAY)
    await town.deliver_once()
    message = json.loads(town.receiver.received[-1].body)
    assert (message["type"], message["id"], len(town.receiver.received)) == ("webhook.ping", ping["event_id"], 5)
    assert [one["event"] for one in await town.delivery_log(hook, state="given_up")] == ["webhook.ping"]
    assert anna.user_id not in str(message)


async def test_what_happens_while_it_is_disabled_comes_later_unless_that_is_not_wanted(town: WebhookSetup) -> None:
    hook = await town.create_webhook()
    for from_now in (False, True):
        await town.ask("save", webhook_id=hook["webhook_id"], enabled=False)
        await town.create_user(f"while{from_now}@studio.example")
        await town.deliver_once()
        await town.ask("save", webhook_id=hook["webhook_id"], enabled=True, from_now=from_now)
        await town.deliver_once()
        assert len(town.receiver.received) == 1


async def test_a_dead_receivers_backlog_has_a_bound_and_comes_in_the_order_of_the_log(
    town: WebhookSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MAX_WAITING_DELIVERIES", 3)
    monkeypatch.setattr(delivery, "RECORD_BATCH", 2)
    monkeypatch.setattr(delivery, "MAX_CONCURRENT_PER_WEBHOOK", 1)
    hook = await town.create_webhook()
    town.receiver.respond = lambda _: BUSY
    everybody = []
    for number in range(9):
        await town.service.clock.advance(1)
        everybody.append((await town.create_user(f"one{number}@studio.example")).user_id)
    await town.deliver_once()
    assert len(await town.delivery_log(hook)) == 3
    town.receiver.respond = lambda _: NO_CONTENT
    town.receiver.received.clear()
    await town.service.clock.advance(15)
    await town.deliver_once()
    assert [subject for _, subject in told(town.receiver)] == everybody


async def test_the_log_is_swept_and_a_secret_that_has_ended_is_forgotten(
    town: WebhookSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MAX_LOGGED_DELIVERIES", 2)
    hook = await town.create_webhook()
    await town.ask("rotate", webhook_id=hook["webhook_id"])
    house = town.service.services
    for number in range(3):
        await town.create_user(f"one{number}@studio.example")
        await town.deliver_once()
        await town.service.clock.advance(1)
    newest = (await town.delivery_log(hook))[:2]
    await house.storage.sweep(town.service.clock.now())
    assert await town.delivery_log(hook) == newest
    assert (await town.ask("get"))[0]["old_secret_until"] == "2027-01-22T08:00:00Z"
    await town.service.clock.advance(31 * DAY)
    await house.storage.sweep(town.service.clock.now())
    admin = await refreshed(town)
    assert (await admin.delivery_log(hook), "old_secret_until" in (await admin.ask("get"))[0]) == ([], False)


async def refreshed(town: WebhookSetup) -> WebhookSetup:
    return replace(town, admin=await create_administrator(town.studio))


async def test_the_head_of_the_audit_log_is_sent_and_logged_once_an_hour_when_it_moved(town: WebhookSetup) -> None:
    house = town.service.services
    hook = await town.create_webhook("audit")
    await town.create_webhook("account", url=f"{town.url}/other")
    await town.create_user()
    await house.audit_sealer.seal_all()
    with capture_logs() as logs:
        await asyncio.gather(*(house.head_publisher.run_once() for _ in range(3)))  # as several nodes do
    await town.deliver_once()
    heads = heads_in(town.receiver)
    assert [line["head"] for line in logs if line["event"] == "audit.head"] == heads
    assert (await house.audit_verification().verify(house.head_exporter.parse_all(heads[0]))).records > 0
    assert (await town.delivery_log(hook))[0]["event"] == "audit.head"

    for minutes, moves, count in ((59, True, 1), (2, False, 2), (61, False, 2), (0, True, 3)):
        if moves:
            await town.create_user(f"user{minutes}@studio.example")
        await town.service.clock.advance(minutes * 60)
        await house.audit_sealer.seal_all()
        await house.head_publisher.run_once()
        await town.deliver_once()
        assert len(heads_in(town.receiver)) == count


def heads_in(receiver: StubServer) -> list[str]:
    messages = [json.loads(received.body) for received in receiver.received if " /events " in received.line]
    return [message["data"]["details"]["head"] for message in messages if message["type"] == "audit.head"]


def cut_seals() -> Verb[None]:
    yield Statement(delete(audit_seals))()


async def test_a_broken_audit_log_is_told_to_anyone_who_listens_to_it(town: WebhookSetup) -> None:
    await town.create_webhook("audit")
    await town.service.services.storage.runner.write(cut_seals)
    await town.create_user()
    await town.deliver_once()
    [message] = [json.loads(received.body) for received in town.receiver.received]
    assert message["type"] == "audit.broken"
    assert (message["data"]["details"]["sealed"], message["data"]["topic"]) == (0, "audit")
