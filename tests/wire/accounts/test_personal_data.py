"""People's data in applications: asked for, collected, removed (R6), against two applications on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import User
from gatehouse.app.housekeeping import housekeeping
from gatehouse.app.own_account import erasure
from gatehouse.app.personal_data import data_errands
from gatehouse.app.rewrapping import SEALED, rewrapped
from gatehouse.audit.model import Origin
from gatehouse.keys.base64url import decode_base64url
from gatehouse.personal_data.model import CallState, DataRequest
from tests.support.letters import new_letters
from tests.support.outside import Outsider, Received, answer, listening
from tests.support.permission_builders import becoming, create_application
from tests.support.resident import LOGIN, Resident
from tests.support.service import Service, running_service
from tests.support.visitor import PASSWORD
from tests.support.whole_database import tables_that_mention, whole_database

OPERATOR = Origin(actor="cli:test")
ALLOWED = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
BUSY = answer(b"", "503 Service Unavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    service: Service
    shop: Outsider
    forum: Outsider

    async def run(self) -> None:
        await self.service.house.data_errands.run_once()

    async def request(self, name: str) -> DataRequest:
        return (await self.service.house.data_desk.requests(name))[0]

    async def states(self, name: str) -> dict[str, str]:
        calls = (await self.request(name)).calls
        return {f"{call.application} {call.url.rpartition('/')[2]}": call.state.value for call in calls}


def saying(document: object) -> Callable[[Received], bytes]:
    return lambda _: answer(json.dumps(document).encode())


@pytest.fixture
async def town(installed_url: str, tmp_path: Path) -> AsyncIterator[Town]:
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(listening(Outsider(say=saying({"orders": [7]}))))
        forum = await stack.enter_async_context(listening(Outsider(say=saying(["a post"]))))
        service = await stack.enter_async_context(running_service(installed_url, tmp_path, environment=ALLOWED))
        for name, outsider in (("Shop", shop), ("Forum", forum)):
            await create_application(service.house.storage, name=name, settings=sources(outsider))
        yield Town(service=service, shop=shop, forum=forum)


@pytest.fixture
def service(town: Town) -> Service:
    return town.service


def sources(outsider: Outsider) -> dict[str, object]:
    base = f"http://127.0.0.1:{outsider.port}"
    data = [{"fetch": f"{base}/fetch", "remove": f"{base}/remove"}]
    return {"gdpr": {"char_sources": [f"{base}/characters"], "data_sources": data}}


def paths(outsider: Outsider) -> list[str]:
    return sorted(received.line.split(" ")[1] for received in outsider.received)


def claims(received: Received) -> Any:
    return json.loads(decode_base64url(received.headers["service-jwt"].split(".")[1].encode()))


# -- an export ----------------------------------------------------------------------------------------


async def test_every_application_is_asked_and_its_answers_are_collected_once(town: Town, anna: User) -> None:
    house = town.service.house
    request_id = await house.data_desk.ask(anna.user_id, OPERATOR)
    assert set((await town.states(request_id)).values()) == {"waiting"}
    await town.run()
    assert (paths(town.shop), paths(town.forum)) == (["/characters", "/fetch"],) * 2
    assert set((await town.states(request_id)).values()) == {"done"}
    collected = await house.data_desk.collect(anna.user_id)
    assert [(one.application, json.loads(one.document)) for one in collected] == [
        *(("Shop", {"orders": [7]}), ("Shop", {"orders": [7]}), ("Forum", ["a post"]), ("Forum", ["a post"])),
    ]
    assert await house.data_desk.collect(anna.user_id) == []
    events = [record.event for record in await house.storage.audit.newest(20, anna.user_id, "")]
    assert (events.count("user.data_asked"), events.count("user.data_answered")) == (1, 4)


async def test_an_application_is_told_two_numbers_and_gets_a_jwt_for_its_origin_alone(town: Town, anna: User) -> None:
    request_id = await town.service.house.data_desk.ask(anna.user_id, OPERATOR)
    await town.run()
    for outsider in (town.shop, town.forum):
        for received in outsider.received:
            assert json.loads(received.body) == {"user_id": anna.user_id, "request_id": request_id}
            told = claims(received)
            now = town.service.clock.now()
            assert (told["typ"], told["iss"]) == ("service_jwt", town.service.base_url)
            assert told["aud"] == f"http://127.0.0.1:{outsider.port}"
            assert (told["iat"], told["exp"]) == (now, now + 300)
            assert anna.user_id not in str(told)


async def test_answers_lie_sealed(town: Town, anna: User) -> None:
    await town.service.house.data_desk.ask(anna.user_id, OPERATOR)
    await town.run()
    rows = await whole_database(town.service.house.storage)
    assert tables_that_mention(rows, "orders", "a post") == set()


async def test_answers_move_to_another_master_key_like_every_secret(town: Town, anna: User) -> None:
    house = town.service.house
    await house.data_desk.ask(anna.user_id, OPERATOR)
    await town.run()
    [place] = [place for place in SEALED if place.name == "gdpr_calls"]
    rows = await house.storage.runner.survey(partial(place.page, b"another", None, 10))
    assert [rewrapped(place, row, house.masters) is not None for row in rows] == [True] * 4


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        (BUSY, "answered 503"),
        (answer(b"", "302 Found", Location="http://127.0.0.1/"), "answered 302"),
        (answer(b"<html>"), "the answer is not JSON"),
        (answer(b"{}" * 600_000), "the response body"),
        (b"nonsense\r\n\r\n", "Expected HTTP/"),
    ],
)
async def test_r_27_one_that_fails_is_tried_again_later_and_later_and_recovers(
    town: Town, anna: User, said: bytes, trouble: str
) -> None:
    well, town.shop.say = town.shop.say, lambda _: said
    request_id = await town.service.house.data_desk.ask(anna.user_id, OPERATOR)
    await town.run()
    states = await town.states(request_id)
    assert (states["Forum fetch"], states["Shop fetch"]) == ("done", "waiting")
    [call] = [call for call in (await town.request(request_id)).calls if call.url.endswith(f"{town.shop.port}/fetch")]
    assert trouble in call.trouble
    assert call.next_try_at == town.service.clock.now() + 60
    await town.run()
    assert len(town.shop.received) == 2, "not before its time"
    await town.service.clock.advance(60)
    await town.run()
    assert len(town.shop.received) == 4
    town.shop.say = well
    await town.service.clock.advance(119)
    await town.run()
    assert len(town.shop.received) == 4, "twice as long"
    await town.service.clock.advance(1)
    await town.run()
    assert set((await town.states(request_id)).values()) == {"done"}
    assert len(town.forum.received) == 2
    assert len(await town.service.house.data_desk.collect(anna.user_id)) == 4


async def test_r_27_one_that_never_answers_is_given_up_in_the_end(town: Town, anna: User) -> None:
    town.shop.say = lambda _: BUSY
    request_id = await town.service.house.data_desk.ask(anna.user_id, OPERATOR)
    for _ in range(40):
        await town.run()
        if (await town.request(request_id)).is_settled:
            break
        await town.service.clock.advance(6 * 3_600)
    states = await town.states(request_id)
    assert (states["Forum fetch"], states["Shop fetch"]) == ("done", "failed")
    assert 8 < len(town.shop.received) < 40
    assert (await town.request(request_id)).calls[0].trouble == "answered 503"


async def test_a_house_that_died_in_the_middle_is_finished_by_another(town: Town, anna: User) -> None:
    """The call was taken and its taker is gone: nobody calls until the lease has run out, then somebody does."""
    store, clock = town.service.house.storage.personal_data, town.service.clock
    await erasure(town.service.house).erase(anna, OPERATOR)
    assert len(await store.claim(clock.now(), 50, 9)) == 2
    await town.run()
    assert town.shop.received == []
    await clock.advance(50)
    await town.run()
    assert set((await town.states(anna.user_id)).values()) == {"done"}
    assert (paths(town.shop), paths(town.forum)) == (["/remove"], ["/remove"])


async def test_no_address_has_two_calls_at_once(town: Town, anna: User) -> None:
    house = town.service.house
    others = [
        await house.administration.create(login=f"{n}@x.example", nick="N", password=None, origin=OPERATOR)
        for n in range(3)
    ]
    entered, gate = asyncio.Event(), asyncio.Event()

    def pause() -> asyncio.Future[object]:
        entered.set()
        return asyncio.ensure_future(gate.wait())

    town.shop.pause = pause
    for user in (anna, *others):
        await erasure(house).erase(user, OPERATOR)
    neighbour = data_errands(  # as another node has them, on the same database
        house.settings,
        store=house.storage.personal_data,
        signer=house.signer,
        masters=house.masters,
        recorder=house.recorder,
        clock=house.clock,
    )
    rounds = [asyncio.create_task(one.run_once()) for one in (house.data_errands, neighbour)]
    await entered.wait()
    assert town.shop.connections == 1
    gate.set()
    await asyncio.gather(*rounds)
    await town.run()
    assert town.shop.most_at_once == 1
    assert len(town.shop.received) == len(town.forum.received) == 4


# -- the account page ---------------------------------------------------------------------------------


async def test_the_account_page_asks_shows_how_far_it_is_and_hands_out(town: Town, resident: Resident) -> None:
    town.forum.say = lambda _: BUSY
    page = (await resident.get("/account")).text
    assert "Data in applications" in page
    assert await resident.do("/account/export/applications") == "Data requested"
    page = (await resident.get("/account")).text
    assert page.count("waiting for an answer") == 2
    assert 'action="/account/export/applications"' not in page
    await town.run()
    page = (await resident.get("/account")).text
    assert "Shop: answered" in page
    assert "Forum: waiting for an answer" in page
    assert "answered 503" not in page
    copy = json.loads((await resident.submit("/account/export")).text)
    assert [(one["application"], one["data"]) for one in copy["applications"]] == [("Shop", {"orders": [7]})] * 2
    await resident.get("/account")
    assert json.loads((await resident.submit("/account/export")).text)["applications"] == []


async def test_without_such_applications_the_page_says_nothing_of_them(town: Town, resident: Resident) -> None:
    for application_id in (50_001, 50_002):
        await town.service.house.storage.applications.edit_application(application_id, becoming(removed=True))
    assert "Data in applications" not in (await resident.get("/account")).text


# -- an erasure ---------------------------------------------------------------------------------------


async def test_who_deletes_the_account_is_removed_everywhere_by_his_number_alone(
    town: Town, resident: Resident, anna: User
) -> None:
    await resident.do("/account/export/applications")
    await resident.get("/account/delete")
    await resident.submit("/account/delete", login=LOGIN)
    with pytest.raises(UserNotFound):
        await town.service.house.storage.accounts.user(anna.user_id)
    await town.run()
    await new_letters(town.service)
    request = await town.request(anna.user_id)
    assert {call.state for call in request.calls} == {CallState.DONE}
    for outsider in (town.shop, town.forum):
        [received] = outsider.received
        assert received.line == "POST /remove HTTP/1.1"
        assert json.loads(received.body) == {"user_id": anna.user_id, "request_id": request.request_id}
    rows = await whole_database(town.service.house.storage)
    assert tables_that_mention(rows, LOGIN, "Anna") == set()
    assert tables_that_mention(rows, anna.user_id) == {"user_ids", "audit_events", "gdpr_requests"}
    events = [record.event for record in await town.service.house.storage.audit.newest(20, anna.user_id, "")]
    assert events.count("user.data_removed") == 2


async def test_an_erasure_that_is_refused_calls_nobody(town: Town) -> None:
    admin = await town.service.house.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=OPERATOR, administrator=True
    )
    resident = Resident(town.service)
    await resident.come_home()
    await resident.get("/account/delete")
    assert "You are the last administrator" in (await resident.submit("/account/delete", login=LOGIN)).text
    await town.run()
    assert (town.shop.connections, town.forum.connections) == (0, 0)
    assert await town.service.house.data_desk.requests(admin.user_id) == []
    await resident.client.aclose()


async def test_a_serving_house_calls_by_itself(town: Town, anna: User) -> None:
    called = asyncio.Event()
    well = town.shop.say

    def say(received: Received) -> bytes:
        called.set()
        return well(received)

    town.shop.say = say
    async with housekeeping(town.service.house):
        await erasure(town.service.house).erase(anna, OPERATOR)
        await asyncio.wait_for(called.wait(), 20)


# -- where nothing is allowed -------------------------------------------------------------------------


async def test_ap_08_an_address_inside_is_not_called_though_it_was_saved(installed_url: str, tmp_path: Path) -> None:
    """As if outbound.allow had listed it when it was saved, or a name leads elsewhere by now."""
    canary = Outsider()
    async with listening(canary), running_service(installed_url, tmp_path) as service:
        house = service.house
        user = await house.administration.create(login=LOGIN, nick="A", password=None, origin=OPERATOR)
        for host in ("127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "2130706433"):
            urls = [f"{scheme}://{host}:{canary.port}/fetch" for scheme in ("http", "https", "gopher", "file")]
            settings = {"gdpr": {"char_sources": urls}}
            await create_application(house.storage, name=f"At {host}", settings=settings)
        request_id = await house.data_desk.ask(user.user_id, OPERATOR)
        await house.data_errands.run_once()
        [request] = await house.data_desk.requests(request_id)
    assert {call.state for call in request.calls} == {CallState.WAITING}
    assert all(call.trouble for call in request.calls)
    assert (len(request.calls), canary.connections) == (16, 0)
