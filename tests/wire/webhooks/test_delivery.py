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
from gatehouse.outbound.calling import Outbound
from gatehouse.outbound.network import SystemResolver, TcpConnector
from gatehouse.storage import webhooks as storage
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import audit_seals
from gatehouse.storage.webhooks import WebhookStorage
from gatehouse.webhooks import delivering, following
from gatehouse.webhooks.delivering import LANE, Deliveries
from gatehouse.webhooks.following import Follower
from gatehouse.webhooks.model import PING
from tests.support.outside import NOTHING, Names, Outsider, Received, Wire, answer, listening
from tests.support.studio_people import administrator
from tests.support.whole_database import tables_that_mention, whole_database
from tests.wire.webhooks.conftest import OPERATOR, Town

BUSY = answer(b"no", "503 Service Unavailable")
GONE = answer(b"", "410 Gone")
DAY = 86_400


def is_signed(received: Received, secret: str) -> bool:
    """Written from the Standard Webhooks page, with nothing of ours."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    head = f"{received.headers['webhook-id']}.{received.headers['webhook-timestamp']}."
    expected = base64.b64encode(hmac.new(key, head.encode() + received.body, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in received.headers["webhook-signature"].split(" ")


def told(receiver: Outsider) -> list[tuple[str, str]]:
    """Type and subject of what arrived."""
    messages = [json.loads(received.body) for received in receiver.received]
    return [(message["type"], message["data"]["subject"]) for message in messages]


def reaching(receiver: Outsider, count: int) -> asyncio.Event:
    """Set once the receiver has got so many."""
    reached = asyncio.Event()

    def say(_: Received) -> bytes:
        if len(receiver.received) >= count:
            reached.set()
        return NOTHING

    receiver.say = say
    return reached


async def test_an_event_arrives_signed_once_for_each_webhook_that_wants_it(town: Town) -> None:
    before = await town.someone("before@studio.example")
    hook = await town.hook("account", description="CRM")
    await town.hook("session", "permission")
    anna = await town.someone()
    house = town.service.house
    assert await house.storage.webhooks.due(town.service.clock.now()) == []
    await house.webhook_deliveries.run_once()
    assert town.receiver.received == []  # it is committed, and not sealed
    await town.run()
    await town.run()
    [received] = town.receiver.received
    assert (received.line, received.headers["content-type"]) == ("POST /events HTTP/1.1", "application/json")
    assert is_signed(received, hook["secret"])
    [record] = await house.storage.audit.newest(1, anna.user_id, "")
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
    [entry] = await town.log(hook)
    assert (entry["event_id"], entry["event"]) == (record.record_id, "user.created")
    assert (entry["state"], entry["tries"], entry["status"], entry["trouble"]) == ("delivered", 1, 204, "")


async def test_a_serving_process_tells_of_what_it_seals_without_being_asked(town: Town) -> None:
    await town.hook("account")
    arrived = reaching(town.receiver, 1)
    async with housekeeping(town.service.house):
        anna = await town.someone()
        await town.service.clock.advance(0.5)
        await asyncio.wait_for(arrived.wait(), 10)
    assert told(town.receiver) == [("user.created", anna.user_id)]


async def test_nothing_personal_secret_or_written_by_hand_is_in_what_is_sent(town: Town) -> None:
    await town.hook("account", "session", "permission")
    anna = await town.someone()
    studio = town.studio
    changed = {"application_id": studio.shop.application_id, "description": "of uncle Bob", "name": "Bobs shop"}
    await studio.ok("application", {"action": "save", "data": changed}, studio.owner.headers)
    tags = {"data": {"user_id": anna.user_id, "tags": ["diabetic"]}}
    await studio.ok("user/tags", tags, town.admin.headers)
    await town.service.house.administration.block(anna.user_id, OPERATOR)
    await town.run()
    events = {event for event, _ in told(town.receiver)}
    assert events == {"user.created", "application.changed", "user.tags_saved", "user.blocked"}
    sent = b"\n".join(received.body for received in town.receiver.received).decode()
    for text in ("anna@studio.example", "Anna", "127.0.0.1", "uncle", "Bob", "diabetic", "salt", "root", "10.9.8.7"):
        assert text not in sent, text
    assert tables_that_mention(await whole_database(town.service.house.storage), "whsec_") == set()


async def test_one_that_fails_is_tried_later_and_later_with_the_same_id_and_a_new_signature(town: Town) -> None:
    hook = await town.hook()
    town.receiver.say = lambda _: BUSY
    await town.someone()
    for tries, delay in ((1, 15), (2, 30), (3, 60)):
        await town.run()
        assert len(town.receiver.received) == tries
        [entry] = await town.log(hook, state="waiting")
        assert (entry["tries"], entry["status"], entry["trouble"]) == (tries, 503, "answered 503")
        await town.service.clock.advance(delay - 1)
        await town.run()
        assert len(town.receiver.received) == tries
        await town.service.clock.advance(1)
    town.receiver.say = lambda _: answer(b"x" * 70_000)  # more than is read of an answer
    await town.run()
    [entry] = await town.log(hook)
    assert (entry["status"], entry["trouble"]) == (0, "The response is too large.")
    await town.service.clock.advance(120)
    town.receiver.say = lambda _: NOTHING
    await town.run()
    assert (await town.log(hook))[0]["state"] == "delivered"
    assert len({received.headers["webhook-id"] for received in town.receiver.received}) == 1
    assert len({received.body for received in town.receiver.received}) == 1
    times = [int(received.headers["webhook-timestamp"]) for received in town.receiver.received]
    assert [later - earlier for earlier, later in pairwise(times)] == [15, 30, 60, 120]
    assert all(is_signed(received, hook["secret"]) for received in town.receiver.received)


async def test_after_a_day_it_is_given_up_and_after_several_in_a_row_the_webhook_is_stopped_on_record(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivering, "GIVEN_UP_MOST", 3)
    hook = await town.hook()
    for batch in ("first", "second"):
        town.receiver.say = lambda _: BUSY
        for number in range(2):
            await town.someone(f"{batch}{number}@studio.example")
            await town.ask("test", webhook_id=hook["webhook_id"])  # not counted
        await pass_a_day(town)
        assert await town.log(hook, state="waiting") == []
        town.receiver.say = lambda _: NOTHING
        await town.someone(f"{batch}@studio.example")  # arrives: it is counted anew
        await town.run()
        assert (await town.ask("get"))[0]["enabled"]
    tries = {entry["tries"] for entry in await town.log(hook, state="given_up") if entry["event"] != PING}
    assert all(10 < count < 20 for count in tries)
    town.receiver.say = lambda _: BUSY
    for number in range(3):
        await town.someone(f"third{number}@studio.example")
    await pass_a_day(town)
    [stopped] = await town.ask("get", webhook_id=hook["webhook_id"])
    assert (stopped["enabled"], stopped["version"]) == (False, 2)
    assert stopped["stopped"].startswith("2027-01-1")
    subject = f"webhook {hook['webhook_id']}"
    events = [record.event for record in await town.service.house.storage.audit.newest(9, subject, "")]
    assert events.count("webhook.stopped") == 1
    # What happens meanwhile waits in the audit log.
    late = await town.someone("late@studio.example")
    town.receiver.received.clear()
    town.receiver.say = lambda _: NOTHING
    await town.run()
    assert town.receiver.received == []
    await town.ask("save", webhook_id=hook["webhook_id"], enabled=True, version=2)
    await town.run()
    assert told(town.receiver) == [("user.created", late.user_id)]
    assert "stopped" not in (await town.ask("get"))[0]


async def pass_a_day(town: Town) -> None:
    for _ in range(30):
        await town.run()
        await town.service.clock.advance(3_600)


async def test_a_receiver_that_says_gone_is_stopped_at_once(town: Town) -> None:
    hook = await town.hook()
    town.receiver.say = lambda _: GONE
    await town.someone()
    await town.run()
    assert not (await town.ask("get"))[0]["enabled"]
    assert [entry["state"] for entry in await town.log(hook)] == ["given_up"]


async def test_r_27_a_receiver_that_never_answers_holds_up_no_other(town: Town) -> None:
    async with listening(Outsider(pause=asyncio.get_running_loop().create_future)) as dead:
        await town.hook(url=f"http://127.0.0.1:{dead.port}/")
        await town.hook()
        house = town.service.house
        for expected in (6, 7):  # more than a lane takes at once, and then one more
            arrived = reaching(town.receiver, expected)
            for number in range(expected - len(town.receiver.received)):
                await town.someone(f"one{expected}{number}@studio.example")
            await house.sealer.seal_all()
            await house.webhook_deliveries.tend()
            await asyncio.wait_for(arrived.wait(), 10)
        assert dead.most_at_once == LANE
        await house.webhook_deliveries.stop()


class Forgetful(WebhookStorage):
    """Of a node that dies when the receiver has answered."""

    async def delivered(self, *_: object) -> None:
        pass


def another_node(town: Town, store: WebhookStorage | None = None, **parts: Any) -> Deliveries:
    house = town.service.house
    usual = {
        "store": store or house.storage.webhooks,
        "follower": Follower(store=house.storage.webhooks, log=house.storage.audit, clock=house.clock),
        "poster": Outbound(
            allowed=house.settings.outbound.allow, resolver=SystemResolver(), connector=TcpConnector()
        ),
        "opening": house.masters,
        "recorder": house.recorder,
        "clock": house.clock,
    }
    return Deliveries(**{**usual, **parts})


async def test_a_node_that_dies_between_sending_and_marking_is_followed_by_one_that_sends_again(town: Town) -> None:
    hook = await town.hook()
    await town.someone()
    house = town.service.house
    await house.sealer.seal_all()
    await another_node(town, Forgetful(house.storage.runner)).run_once()
    await town.run()
    assert len(town.receiver.received) == 1  # the dead one holds it
    await town.service.clock.advance(60)
    await town.run()
    first, second = town.receiver.received
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    [entry] = await town.log(hook)
    assert (entry["state"], entry["tries"]) == ("delivered", 2)


async def test_of_several_nodes_one_makes_each_delivery(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "BATCH", 3)
    hook = await town.hook()
    everybody = [(await town.someone(f"one{number}@studio.example")).user_id for number in range(10)]
    await town.service.house.sealer.seal_all()
    await asyncio.gather(*(another_node(town).run_once() for _ in range(3)))
    await town.run()
    assert sorted(told(town.receiver)) == sorted(("user.created", user_id) for user_id in everybody)
    assert [entry["tries"] for entry in await town.log(hook)] == [1] * 10


async def test_a_name_that_leads_inside_is_not_called_and_the_log_does_not_tell_where_it_leads(town: Town) -> None:
    """AP-08 for webhooks: the name is an administrator's choice, where it leads is not ours to trust."""
    hook = await town.hook(url="https://inside.example/")
    await town.someone()
    await town.service.house.sealer.seal_all()
    wire = Wire()
    for tries, inside in enumerate(["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1"], 1):
        poster = Outbound(allowed=(), resolver=Names(inside_example=[[inside]]), connector=wire)
        await another_node(town, poster=poster).run_once()
        [entry] = await town.log(hook)
        assert (entry["state"], entry["tries"]) == ("waiting", tries)
        assert entry["trouble"] == "This URL is not allowed."
        await town.service.clock.advance(3_600)
    assert wire.connected == []


async def test_redelivering_sends_the_same_event_and_a_test_sends_a_ping_once(town: Town) -> None:
    hook = await town.hook()
    anna = await town.someone()
    await town.run()
    [entry] = await town.log(hook)
    again = await town.ask("redeliver", webhook_id=hook["webhook_id"], delivery_id=entry["delivery_id"])
    assert (again["event_id"], again["state"]) == (entry["event_id"], "waiting")
    await town.run()
    first, second = town.receiver.received
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    # One that waits is due at once, and is no second one.
    town.receiver.say = lambda _: BUSY
    await town.someone("bob@studio.example")
    await town.run()
    [waiting] = await town.log(hook, state="waiting")
    await town.ask("redeliver", webhook_id=hook["webhook_id"], delivery_id=waiting["delivery_id"])
    await town.run()
    assert len(town.receiver.received) == 4
    # A ping goes to a disabled one too, and is not tried again.
    await town.ask("save", webhook_id=hook["webhook_id"], enabled=False)
    ping = await town.ask("test", webhook_id=hook["webhook_id"])
    await town.run()
    await town.service.clock.advance(DAY)
    await town.run()
    message = json.loads(town.receiver.received[-1].body)
    assert (message["type"], message["id"], len(town.receiver.received)) == ("webhook.ping", ping["event_id"], 5)
    assert [one["event"] for one in await town.log(hook, state="given_up")] == ["webhook.ping"]
    assert anna.user_id not in str(message)


async def test_what_happens_while_it_is_disabled_comes_later_unless_that_is_not_wanted(town: Town) -> None:
    hook = await town.hook()
    for from_now in (False, True):
        await town.ask("save", webhook_id=hook["webhook_id"], enabled=False)
        await town.someone(f"while{from_now}@studio.example")
        await town.run()
        await town.ask("save", webhook_id=hook["webhook_id"], enabled=True, from_now=from_now)
        await town.run()
        assert len(town.receiver.received) == 1


async def test_a_dead_receivers_backlog_has_a_bound_and_comes_in_the_order_of_the_log(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "WAITING_MOST", 3)
    monkeypatch.setattr(following, "BATCH", 2)
    monkeypatch.setattr(delivering, "LANE", 1)
    hook = await town.hook()
    town.receiver.say = lambda _: BUSY
    everybody = []
    for number in range(9):
        await town.service.clock.advance(1)
        everybody.append((await town.someone(f"one{number}@studio.example")).user_id)
    await town.run()
    assert len(await town.log(hook)) == 3
    town.receiver.say = lambda _: NOTHING
    town.receiver.received.clear()
    await town.service.clock.advance(15)
    await town.run()
    assert [subject for _, subject in told(town.receiver)] == everybody


async def test_the_log_is_swept_and_a_secret_that_has_ended_is_forgotten(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "LOG_MOST", 2)
    hook = await town.hook()
    await town.ask("rotate", webhook_id=hook["webhook_id"])
    house = town.service.house
    for number in range(3):
        await town.someone(f"one{number}@studio.example")
        await town.run()
        await town.service.clock.advance(1)
    newest = (await town.log(hook))[:2]
    await house.storage.sweep(town.service.clock.now())
    assert await town.log(hook) == newest
    assert (await town.ask("get"))[0]["old_secret_until"] == "2027-01-22T08:00:00Z"
    await town.service.clock.advance(31 * DAY)
    await house.storage.sweep(town.service.clock.now())
    admin = await refreshed(town)
    assert (await admin.log(hook), "old_secret_until" in (await admin.ask("get"))[0]) == ([], False)


async def refreshed(town: Town) -> Town:
    return replace(town, admin=await administrator(town.studio))


async def test_the_head_of_the_audit_log_is_sent_and_logged_once_an_hour_when_it_moved(town: Town) -> None:
    house = town.service.house
    hook = await town.hook("audit")
    await town.hook("account", url=f"{town.url}/other")
    await town.someone()
    await house.sealer.seal_all()
    with capture_logs() as logs:
        await asyncio.gather(*(house.head_offers.run_once() for _ in range(3)))  # as several nodes do
    await town.run()
    heads = heads_in(town.receiver)
    assert [line["head"] for line in logs if line["event"] == "audit.head"] == heads
    assert (await house.verification().verify(house.head_notes.find(heads[0]))).records > 0
    assert (await town.log(hook))[0]["event"] == "audit.head"

    for minutes, moves, count in ((59, True, 1), (2, False, 2), (61, False, 2), (0, True, 3)):
        if moves:
            await town.someone(f"user{minutes}@studio.example")
        await town.service.clock.advance(minutes * 60)
        await house.sealer.seal_all()
        await house.head_offers.run_once()
        await town.run()
        assert len(heads_in(town.receiver)) == count


def heads_in(receiver: Outsider) -> list[str]:
    messages = [json.loads(received.body) for received in receiver.received if " /events " in received.line]
    return [message["data"]["details"]["head"] for message in messages if message["type"] == "audit.head"]


def cut_seals() -> Verb[None]:
    yield Statement(delete(audit_seals))()


async def test_a_broken_audit_log_is_told_to_whoever_listens_to_it(town: Town) -> None:
    await town.hook("audit")
    await town.service.house.storage.runner.act(cut_seals)
    await town.someone()
    await town.run()
    [message] = [json.loads(received.body) for received in town.receiver.received]
    assert message["type"] == "audit.broken"
    assert (message["data"]["details"]["sealed"], message["data"]["topic"]) == (0, "audit")
