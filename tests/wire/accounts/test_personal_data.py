"""GDPR requests to applications: export and removal (R6), with two applications on loopback."""

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
from gatehouse.app.rewrapping import SEALED_COLUMNS, rewrap_row
from gatehouse.app.services.core import outbound_client
from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.encoding import decode_base64url
from gatehouse.personal_data.data_jobs import DataJobs
from gatehouse.personal_data.model import CallState, DataRequest
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.mailbox import new_messages
from tests.support.permission_builders import create_application, set_fields
from tests.support.service import RunningService, running_service
from tests.support.stub_server import ReceivedRequest, StubServer, http_response, run_stub_server

OPERATOR = AuditOrigin(actor="cli:test")
ALLOWED = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
BUSY = http_response(b"", "503 Service Unavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSetup:
    service: RunningService
    shop: StubServer
    forum: StubServer

    async def run(self) -> None:
        await self.service.services.personal_data.jobs.run_once()

    async def request(self, name: str) -> DataRequest:
        return (await self.service.services.personal_data.requests.find_requests(name))[0]

    async def states(self, name: str) -> dict[str, str]:
        calls = (await self.request(name)).calls
        return {f"{call.application} {call.url.rpartition('/')[2]}": call.state.value for call in calls}


def reply_with(document: object) -> Callable[[ReceivedRequest], bytes]:
    return lambda _: http_response(json.dumps(document).encode())


@pytest.fixture
async def data_setup(installed_url: str, tmp_path: Path) -> AsyncIterator[DataSetup]:
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(run_stub_server(StubServer(respond=reply_with({"orders": [7]}))))
        forum = await stack.enter_async_context(run_stub_server(StubServer(respond=reply_with(["a post"]))))
        service = await stack.enter_async_context(running_service(installed_url, tmp_path, environment=ALLOWED))
        for name, outsider in (("Shop", shop), ("Forum", forum)):
            await create_application(service.services.storage, name=name, settings=sources(outsider))
        yield DataSetup(service=service, shop=shop, forum=forum)


@pytest.fixture
def service(data_setup: DataSetup) -> RunningService:
    return data_setup.service


def sources(outsider: StubServer) -> dict[str, object]:
    base = f"http://127.0.0.1:{outsider.port}"
    data = [{"fetch": f"{base}/fetch", "remove": f"{base}/remove"}]
    return {"gdpr": {"char_sources": [f"{base}/characters"], "data_sources": data}}


def paths(outsider: StubServer) -> list[str]:
    return sorted(received.line.split(" ")[1] for received in outsider.received)


def claims(received: ReceivedRequest) -> Any:
    return json.loads(decode_base64url(received.headers["service-jwt"].split(".")[1].encode()))


# -- an export ----------------------------------------------------------------------------------------


async def test_every_application_is_called_and_its_data_collected_once(data_setup: DataSetup, anna: User) -> None:
    services = data_setup.service.services
    request_id = await services.personal_data.requests.request_export(anna.user_id, OPERATOR)
    assert set((await data_setup.states(request_id)).values()) == {"waiting"}
    await data_setup.run()
    assert (paths(data_setup.shop), paths(data_setup.forum)) == (["/characters", "/fetch"],) * 2
    assert set((await data_setup.states(request_id)).values()) == {"done"}
    collected = await services.personal_data.requests.collect(anna.user_id)
    assert [(jobs.application, json.loads(jobs.document)) for jobs in collected] == [
        *(("Shop", {"orders": [7]}), ("Shop", {"orders": [7]}), ("Forum", ["a post"]), ("Forum", ["a post"])),
    ]
    assert await services.personal_data.requests.collect(anna.user_id) == []
    events = [record.event for record in await services.storage.audit.newest_records(20, anna.user_id, "")]
    assert (events.count("user.data_asked"), events.count("user.data_answered")) == (1, 4)


async def test_an_application_is_told_two_numbers_and_gets_a_jwt_for_its_origin_alone(
    data_setup: DataSetup, anna: User
) -> None:
    request_id = await data_setup.service.services.personal_data.requests.request_export(anna.user_id, OPERATOR)
    await data_setup.run()
    for outsider in (data_setup.shop, data_setup.forum):
        for received in outsider.received:
            assert json.loads(received.body) == {"user_id": anna.user_id, "request_id": request_id}
            received_claims = claims(received)
            now = data_setup.service.clock.now()
            assert (received_claims["typ"], received_claims["iss"]) == ("service_jwt", data_setup.service.base_url)
            assert received_claims["aud"] == f"http://127.0.0.1:{outsider.port}"
            assert (received_claims["iat"], received_claims["exp"]) == (now, now + 300)
            assert anna.user_id not in str(received_claims)


async def test_answers_lie_sealed(data_setup: DataSetup, anna: User) -> None:
    await data_setup.service.services.personal_data.requests.request_export(anna.user_id, OPERATOR)
    await data_setup.run()
    rows = await read_all_tables(data_setup.service.services.storage)
    assert tables_that_mention(rows, "orders", "a post") == set()


async def test_answers_move_to_another_master_key_like_every_secret(data_setup: DataSetup, anna: User) -> None:
    services = data_setup.service.services
    await services.personal_data.requests.request_export(anna.user_id, OPERATOR)
    await data_setup.run()
    [column] = [column for column in SEALED_COLUMNS if column.name == "gdpr_calls"]
    rows = await services.storage.runner.snapshot_read(partial(column.read_page, b"another", None, 10))
    assert [rewrap_row(column, row, services.core.masters) is not None for row in rows] == [True] * 4


@pytest.mark.parametrize(
    ("raw_response", "trouble"),
    [
        (BUSY, "answered 503"),
        (http_response(b"", "302 Found", Location="http://127.0.0.1/"), "answered 302"),
        (http_response(b"<html>"), "the answer is not JSON"),
        (http_response(b"{}" * 600_000), "the response body"),
        (b"nonsense\r\n\r\n", "Expected HTTP/"),
    ],
)
async def test_r_27_one_that_fails_is_tried_again_later_and_later_and_recovers(
    data_setup: DataSetup, anna: User, raw_response: bytes, trouble: str
) -> None:
    well, data_setup.shop.respond = data_setup.shop.respond, lambda _: raw_response
    request_id = await data_setup.service.services.personal_data.requests.request_export(anna.user_id, OPERATOR)
    await data_setup.run()
    states = await data_setup.states(request_id)
    assert (states["Forum fetch"], states["Shop fetch"]) == ("done", "waiting")
    [call] = [
        call
        for call in (await data_setup.request(request_id)).calls
        if call.url.endswith(f"{data_setup.shop.port}/fetch")
    ]
    assert trouble in call.trouble
    assert call.next_try_at == data_setup.service.clock.now() + 60
    await data_setup.run()
    assert len(data_setup.shop.received) == 2, "no retry before its time"
    await data_setup.service.clock.advance(60)
    await data_setup.run()
    assert len(data_setup.shop.received) == 4
    data_setup.shop.respond = well
    await data_setup.service.clock.advance(119)
    await data_setup.run()
    assert len(data_setup.shop.received) == 4, "the second retry waits twice as long"
    await data_setup.service.clock.advance(1)
    await data_setup.run()
    assert set((await data_setup.states(request_id)).values()) == {"done"}
    assert len(data_setup.forum.received) == 2
    assert len(await data_setup.service.services.personal_data.requests.collect(anna.user_id)) == 4


async def test_r_27_one_that_never_answers_is_given_up_in_the_end(data_setup: DataSetup, anna: User) -> None:
    data_setup.shop.respond = lambda _: BUSY
    request_id = await data_setup.service.services.personal_data.requests.request_export(anna.user_id, OPERATOR)
    for _ in range(40):
        await data_setup.run()
        if (await data_setup.request(request_id)).is_settled:
            break
        await data_setup.service.clock.advance(6 * 3_600)
    states = await data_setup.states(request_id)
    assert (states["Forum fetch"], states["Shop fetch"]) == ("done", "failed")
    assert 8 < len(data_setup.shop.received) < 40
    assert (await data_setup.request(request_id)).calls[0].trouble == "answered 503"


async def test_call_of_a_process_that_ended_is_made_by_another(data_setup: DataSetup, anna: User) -> None:
    """A call was claimed by a process that has ended: after its lease it is claimed again."""
    store, clock = data_setup.service.services.storage.personal_data, data_setup.service.clock
    await data_setup.service.services.accounts.erasure.erase(anna, OPERATOR)
    assert len(await store.claim_due_calls(clock.now(), 50, 9)) == 2
    await data_setup.run()
    assert data_setup.shop.received == []
    await clock.advance(50)
    await data_setup.run()
    assert set((await data_setup.states(anna.user_id)).values()) == {"done"}
    assert (paths(data_setup.shop), paths(data_setup.forum)) == (["/remove"], ["/remove"])


async def test_no_url_has_two_concurrent_calls(data_setup: DataSetup, anna: User) -> None:
    services = data_setup.service.services
    others = [
        await services.accounts.administration.create(
            login=f"{n}@x.example", nick="N", password=None, origin=OPERATOR
        )
        for n in range(3)
    ]
    entered, gate = asyncio.Event(), asyncio.Event()

    def pause() -> asyncio.Future[object]:
        entered.set()
        return asyncio.ensure_future(gate.wait())

    data_setup.shop.pause = pause
    for user in (anna, *others):
        await services.accounts.erasure.erase(user, OPERATOR)
    neighbour = DataJobs(  # like a second node, on the same database
        store=services.storage.personal_data,
        poster=outbound_client(services.settings),
        signer=services.keys.signer,
        sealer=services.core.masters,
        recorder=services.core.recorder,
        clock=services.clock,
        issuer=services.base_url,
    )
    rounds = [asyncio.create_task(jobs.run_once()) for jobs in (services.personal_data.jobs, neighbour)]
    await entered.wait()
    assert data_setup.shop.connections == 1
    gate.set()
    await asyncio.gather(*rounds)
    await data_setup.run()
    assert data_setup.shop.max_open_connections == 1
    assert len(data_setup.shop.received) == len(data_setup.forum.received) == 4


# -- the account page ---------------------------------------------------------------------------------


async def test_the_account_page_asks_shows_how_far_it_is_and_hands_out(
    data_setup: DataSetup, account_browser: AccountBrowser
) -> None:
    data_setup.forum.respond = lambda _: BUSY
    page = (await account_browser.get("/account")).text
    assert "Data in applications" in page
    assert await account_browser.submit_and_read_notice("/account/export/applications") == "Data requested"
    page = (await account_browser.get("/account")).text
    assert page.count("waiting for an answer") == 2
    assert 'action="/account/export/applications"' not in page
    await data_setup.run()
    page = (await account_browser.get("/account")).text
    assert "Shop: answered" in page
    assert "Forum: waiting for an answer" in page
    assert "answered 503" not in page
    copy = json.loads((await account_browser.submit("/account/export")).text)
    assert [(application["application"], application["data"]) for application in copy["applications"]] == [
        ("Shop", {"orders": [7]})
    ] * 2
    await account_browser.get("/account")
    assert json.loads((await account_browser.submit("/account/export")).text)["applications"] == []


async def test_account_page_hides_application_data_without_such_applications(
    data_setup: DataSetup, account_browser: AccountBrowser
) -> None:
    for application_id in (50_001, 50_002):
        await data_setup.service.services.storage.applications.edit_application(
            application_id, set_fields(removed=True)
        )
    assert "Data in applications" not in (await account_browser.get("/account")).text


# -- an erasure ---------------------------------------------------------------------------------------


async def test_deleted_account_is_removed_from_every_application_by_user_id_only(
    data_setup: DataSetup, account_browser: AccountBrowser, anna: User
) -> None:
    await account_browser.submit_and_read_notice("/account/export/applications")
    await account_browser.get("/account/delete")
    await account_browser.submit("/account/delete", login=LOGIN)
    with pytest.raises(UserNotFound):
        await data_setup.service.services.storage.accounts.user(anna.user_id)
    await data_setup.run()
    await new_messages(data_setup.service)
    request = await data_setup.request(anna.user_id)
    assert {call.state for call in request.calls} == {CallState.DONE}
    for outsider in (data_setup.shop, data_setup.forum):
        [received] = outsider.received
        assert received.line == "POST /remove HTTP/1.1"
        assert json.loads(received.body) == {"user_id": anna.user_id, "request_id": request.request_id}
    rows = await read_all_tables(data_setup.service.services.storage)
    assert tables_that_mention(rows, LOGIN, "Anna") == set()
    assert tables_that_mention(rows, anna.user_id) == {"user_ids", "audit_events", "gdpr_requests"}
    events = [
        record.event
        for record in await data_setup.service.services.storage.audit.newest_records(20, anna.user_id, "")
    ]
    assert events.count("user.data_removed") == 2


async def test_an_erasure_that_is_refused_calls_no_one(data_setup: DataSetup) -> None:
    admin = await data_setup.service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=OPERATOR, administrator=True
    )
    account_browser = AccountBrowser(data_setup.service)
    await account_browser.sign_in_and_open_account()
    await account_browser.get("/account/delete")
    assert "You are the last administrator" in (await account_browser.submit("/account/delete", login=LOGIN)).text
    await data_setup.run()
    assert (data_setup.shop.connections, data_setup.forum.connections) == (0, 0)
    assert await data_setup.service.services.personal_data.requests.find_requests(admin.user_id) == []
    await account_browser.client.aclose()


async def test_a_serving_house_calls_by_itself(data_setup: DataSetup, anna: User) -> None:
    called = asyncio.Event()
    well = data_setup.shop.respond

    def reply(received: ReceivedRequest) -> bytes:
        called.set()
        return well(received)

    data_setup.shop.respond = reply
    async with housekeeping(data_setup.service.services):
        await data_setup.service.services.accounts.erasure.erase(anna, OPERATOR)
        await asyncio.wait_for(called.wait(), 20)


# -- blocked targets ----------------------------------------------------------------------------------


async def test_ap_08_an_address_inside_is_not_called_though_it_was_saved(installed_url: str, tmp_path: Path) -> None:
    """As if outbound.allow had listed it when it was saved, or the name now resolves differently."""
    canary = StubServer()
    async with run_stub_server(canary), running_service(installed_url, tmp_path) as service:
        services = service.services
        user = await services.accounts.administration.create(login=LOGIN, nick="A", password=None, origin=OPERATOR)
        for host in ("127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "2130706433"):
            urls = [f"{scheme}://{host}:{canary.port}/fetch" for scheme in ("http", "https", "gopher", "file")]
            settings = {"gdpr": {"char_sources": urls}}
            await create_application(services.storage, name=f"At {host}", settings=settings)
        request_id = await services.personal_data.requests.request_export(user.user_id, OPERATOR)
        await services.personal_data.jobs.run_once()
        [request] = await services.personal_data.requests.find_requests(request_id)
    assert {call.state for call in request.calls} == {CallState.WAITING}
    assert all(call.trouble for call in request.calls)
    assert (len(request.calls), canary.connections) == (16, 0)
