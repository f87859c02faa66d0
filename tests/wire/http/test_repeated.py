"""The same question gets the same answer again for as long as it is the answer, and not a moment longer."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gatehouse import logs
from gatehouse.accounts.model import User
from gatehouse.audit.model import Origin
from gatehouse.keys.model import Algorithm, KeyLine, Purpose
from gatehouse.permissions.model.rule import End
from gatehouse.permissions.model.scope import ROOT
from gatehouse.permissions.model.user_record import Assignment
from gatehouse.storage.opening import open_storage
from gatehouse.tokens.decoding import take_apart
from gatehouse.web import repeated
from gatehouse.web.lasting import LONGEST
from gatehouse.web.metrics import Metrics
from gatehouse.web.repeating import Known, RepeatingProtocol
from tests.support.builders import a_record
from tests.support.clock import settle
from tests.support.moments import renewed
from tests.support.oauth import Relying, a_native_client
from tests.support.permission_builders import holding
from tests.support.rawhttp import Answer, RawConnection, raw_connection
from tests.support.service import Service, running_service
from tests.support.studio import Studio, a_studio
from tests.support.studio_people import give, rules

USERINFO = "/proxy/oauth/userinfo"
RECORD = "/api/permissions/meta/data"
CHECK = "/api/permissions/check"
KEYS = "/proxy/oauth/keys"
OF_THIS_REQUEST = {"x-request-id", "date"}
ANNA = "anna@studio.example"


def a_request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join((*lines, "", "")).encode() + body


def a_list(studio: Studio, kind: str = "list", headers: Mapping[str, str] | None = None, **options: object) -> bytes:
    body = {
        "action": "get",
        "application_id": studio.shop.application_id,
        "data": {"type": kind},
        "options": options,
    }
    return a_request("POST", RECORD, {**studio.visitor.headers, **(headers or {})}, json.dumps(body).encode())


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each request that came whole, whether its answer was one that had been given before."""
    seen: list[bool] = []
    ask, answer_again = RepeatingProtocol._ask, RepeatingProtocol._answer_again

    def noting_ask(line: RepeatingProtocol, *asked: Any) -> None:
        seen.append(False)
        ask(line, *asked)

    def noting_answer(line: RepeatingProtocol, known: Known) -> None:
        before = len(seen)
        answer_again(line, known)
        if len(seen) == before:
            seen.append(True)

    monkeypatch.setattr(RepeatingProtocol, "_ask", noting_ask)
    monkeypatch.setattr(RepeatingProtocol, "_answer_again", noting_answer)
    return seen


@pytest.fixture
async def anna(service: Service) -> User:
    return await service.house.administration.create(
        login=ANNA, nick="Anna", password="correct horse battery staple", origin=Origin(actor="test")
    )


@pytest.fixture
async def web(service: Service) -> Relying:
    return await a_native_client(service)


@pytest.fixture
async def question(web: Relying, anna: User) -> bytes:
    """Userinfo with a token of Anna's."""
    tokens = await web.tokens(await web.granted(anna))
    await renewed(web.service.house.storage.runner)
    return a_request("GET", USERINFO, {"Authorization": f"Bearer {tokens['access_token']}"})


@pytest.fixture
async def studio(service: Service) -> Studio:
    studio = await a_studio(service)
    await renewed(service.house.storage.runner)
    return studio


@pytest.fixture
async def line(service: Service) -> AsyncIterator[RawConnection]:
    async with connection_to(service) as connection:
        yield connection


@asynccontextmanager
async def connection_to(service: Service) -> AsyncIterator[RawConnection]:
    async with raw_connection(int(service.base_url.rpartition(":")[2])) as connection:
        yield connection


async def ask(line: RawConnection, request: bytes) -> Answer:
    line.send(request)
    return await line.answer()


def told(answer: Answer) -> object:
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["data"]


# -- the same answer ----------------------------------------------------------------------------------


async def test_userinfo_is_told_again_in_the_same_words(
    line: RawConnection, question: bytes, again: list[bool]
) -> None:
    first, second, third = [await ask(line, question) for _ in range(3)]
    assert again == [False, True, True]
    assert (first.status, first.body) == (second.status, second.body) == (200, third.body)
    own = [[pair for pair in one.headers if pair[0] not in OF_THIS_REQUEST] for one in (first, second)]
    assert own[0] == own[1]
    assert [name for name, _ in first.headers] == [name for name, _ in second.headers]
    assert len({one.header("x-request-id") for one in (first, second, third)}) == 3


@pytest.mark.parametrize("kind", ["list", "list_short", "roles"])
async def test_lists_are_told_again_in_the_same_words(
    line: RawConnection, studio: Studio, again: list[bool], kind: str
) -> None:
    first, second = [await ask(line, a_list(studio, kind)) for _ in range(2)]
    assert again == [False, True]
    assert (first.status, first.body) == (200, second.body)
    assert first.header("etag") == second.header("etag")


async def test_what_somebody_may_is_told_again_until_it_changes(
    service: Service, line: RawConnection, studio: Studio, again: list[bool]
) -> None:
    shop = studio.shop.application_id
    body = {"application_id": shop, "data": {"checks": [{"rule": "door.open"}]}}
    request = a_request("POST", CHECK, studio.visitor.headers, json.dumps(body).encode())
    before = [told(await ask(line, request)) for _ in range(2)]
    end = service.clock.now() + 20
    await give(studio, studio.visitor, shop, scopes={ROOT: rules("door.open", end=End(expired=end))})
    held = told(await ask(line, request))
    await service.clock.advance(20)
    assert [*before, held, told(await ask(line, request))] == [[False], [False], [True], [False]]
    assert again == [False, True, False, False]


async def test_not_modified_is_told_again_as_well(line: RawConnection, studio: Studio, again: list[bool]) -> None:
    tag = (await ask(line, a_list(studio))).header("etag") or ""
    answers = [await ask(line, a_list(studio, headers={"If-None-Match": tag})) for _ in range(2)]
    assert [answer.status for answer in answers] == [304, 304]
    assert again == [False, False, True]


async def test_the_keys_are_told_again_until_there_is_another(
    service: Service, line: RawConnection, again: list[bool]
) -> None:
    request = a_request("GET", KEYS, {})
    first, second = [await ask(line, request) for _ in range(2)]
    assert again == [False, True]
    assert first.body == second.body
    await service.house.rotation.rotate(KeyLine(Purpose.TOKENS, Algorithm.ES256), origin=Origin(actor="test"))
    await service.house.keyring.reload()
    assert (await ask(line, request)).body != first.body


# -- what ends an answer ------------------------------------------------------------------------------


async def test_a_change_is_in_the_next_answer(
    service: Service, line: RawConnection, question: bytes, anna: User, installed_url: str
) -> None:
    """Whoever made it: this process, or the command line beside it."""
    await ask(line, question)
    await service.house.storage.profile.set_nick(anna.user_id, "Ann", a_record())
    assert json.loads((await ask(line, question)).body)["nickname"] == "Ann"
    async with open_storage(installed_url, migrate=False) as other:
        await other.profile.set_nick(anna.user_id, "Annie", a_record())
    assert json.loads((await ask(line, question)).body)["nickname"] == "Annie"


async def test_somebody_who_is_blocked_is_told_nothing_more(
    service: Service, line: RawConnection, question: bytes, anna: User, studio: Studio
) -> None:
    assert [(await ask(line, one)).status for one in (question, a_list(studio)) * 2] == [200] * 4
    for user_id in (anna.user_id, studio.visitor.user_id):
        await service.house.storage.accounts.set_blocked(user_id, a_record(), blocked=True, now=service.clock.now())
    assert [(await ask(line, one)).status for one in (question, a_list(studio)) * 2] == [401] * 4


async def test_a_revoked_token_tells_nothing_more(web: Relying, line: RawConnection, question: bytes) -> None:
    assert [(await ask(line, question)).status for _ in range(2)] == [200, 200]
    token = question.split(b"Bearer ")[1].split(b"\r\n")[0].decode()
    secret = {"client_id": web.client.client_id, "client_secret": web.secret}
    gone = await web.service.client.post("/proxy/oauth/revoke", data={**secret, "token": token})
    assert gone.status_code == 200
    assert (await ask(line, question)).status == 401


async def statuses_up_to(end: int, service: Service, request: bytes) -> list[int]:
    """Asked twice shortly before, once in the last second, and once more."""
    await service.clock.advance(end - 10 - service.clock.now())
    async with connection_to(service) as line:
        first = [(await ask(line, request)).status for _ in range(2)]
        await service.clock.advance(9)
        last = (await ask(line, request)).status
        await service.clock.advance(1)
        return [*first, last, (await ask(line, request)).status]


async def test_an_access_token_ends_on_its_second(service: Service, question: bytes, again: list[bool]) -> None:
    assert await statuses_up_to(service.clock.now() + 3_600, service, question) == [200, 200, 200, 401]
    assert again == [False, True, True, False]


async def test_a_jwt_ends_on_its_second(service: Service, studio: Studio, again: list[bool]) -> None:
    end = take_apart(studio.visitor.jwt).payload["exp"]
    assert isinstance(end, int)
    assert await statuses_up_to(end, service, a_list(studio)) == [200, 200, 200, 401]
    assert again == [False, True, True, False]


async def test_a_rule_ends_on_its_second(
    service: Service, line: RawConnection, studio: Studio, again: list[bool]
) -> None:
    end = service.clock.now() + 20
    held = {ROOT: rules("door.open", end=End(expired=end))}
    await give(studio, studio.visitor, studio.shop.application_id, scopes=held)
    await renewed(service.house.storage.runner)
    lists = []
    for seconds in (0, 19, 1):
        await service.clock.advance(seconds)
        lists.append(told(await ask(line, a_list(studio))))
    assert lists == [["private_data.door.open"], ["private_data.door.open"], []]
    assert again == [False, True, False]


async def test_seconds_that_are_left_are_counted_anew(
    service: Service, line: RawConnection, studio: Studio, again: list[bool]
) -> None:
    end = service.clock.now() + 20
    held = {ROOT: rules("door.open", end=End(expired=end))}
    await give(studio, studio.visitor, studio.shop.application_id, scopes=held)
    lists = []
    for seconds in (0, 5):
        await service.clock.advance(seconds)
        lists.append(told(await ask(line, a_list(studio, with_exp=True))))
    assert lists == [["private_data.door.open:20"], ["private_data.door.open:15"]]
    assert again == [False, False]


async def test_an_end_that_lies_so_far_ahead_of_whoever_asks_is_told_anew(
    service: Service, line: RawConnection, studio: Studio, again: list[bool]
) -> None:
    shop = studio.shop.application_id
    mod = {"Mod": {"meta": {"private_data": {"door": {"value": True}}}}}
    await studio.ok(
        "meta/schema", {"action": "save", "application_id": shop, "data": {"roles": mod}}, studio.owner.headers
    )
    role = Assignment(role="mod", end=End(ttl=600))
    await give(studio, studio.visitor, shop, scopes={ROOT: holding(role)})
    ends = []
    for seconds in (0, 5):
        await service.clock.advance(seconds)
        ends.append(json.loads((await ask(line, a_list(studio))).body)["expired"] - service.clock.now())
    assert ends == [600, 600]
    assert not any(again)


async def test_a_key_that_this_process_learns_of_late_counts_from_then_on(
    service: Service, line: RawConnection, studio: Studio, again: list[bool]
) -> None:
    """Keys are believed by what was read of them last, perhaps after the commit that changed them."""
    for _ in range(2):
        await ask(line, a_list(studio))
    service.house.keyring.version -= 1
    await ask(line, a_list(studio))
    assert again == [False, True, False]


async def test_no_answer_is_given_again_for_longer_than_a_minute(
    service: Service, line: RawConnection, question: bytes, again: list[bool]
) -> None:
    for seconds in (0, LONGEST - 1, 1):
        await service.clock.advance(seconds)
        await ask(line, question)
    assert again == [False, True, False]


# -- which questions are the same ---------------------------------------------------------------------


async def test_what_is_not_the_very_same_request_is_another(
    line: RawConnection, question: bytes, again: list[bool]
) -> None:
    await ask(line, question)
    other = question.replace(b"\r\n\r\n", b"\r\nAccept: */*\r\n\r\n")
    token = question.replace(b"Bearer ", b"Bearer x")
    assert [(await ask(line, one)).status for one in (other, token)] == [200, 401]
    assert again == [False, False, False]


async def test_another_address_asks_another_question(
    service: Service, line: RawConnection, question: bytes, again: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask(line, question)
    monkeypatch.setattr("uvicorn.protocols.http.httptools_impl.get_remote_addr", lambda _: ("127.0.0.2", 4_000))
    async with connection_to(service) as elsewhere:
        assert (await ask(elsewhere, question)).status == 200
    assert again == [False, False]


async def test_a_page_of_another_origin_is_judged_every_time(
    line: RawConnection, question: bytes, again: list[bool]
) -> None:
    asked = question.replace(b"\r\n\r\n", b"\r\nOrigin: https://shop.example\r\n\r\n")
    for _ in range(2):
        assert (await ask(line, asked)).status == 200
    assert again == [False, False]


async def test_requests_that_come_in_parts_or_together_are_answered_in_their_order(
    line: RawConnection, question: bytes, studio: Studio
) -> None:
    alone = await ask(line, question)
    for _ in range(2):
        line.send(question + a_list(studio) + question)
        answers = [await line.answer() for _ in range(3)]
        assert [answer.body for answer in answers[::2]] == [alone.body] * 2
        assert b'"status":"OK"' in answers[1].body
    line.send(question[:40])
    await line.sent()
    line.send(question[40:])
    assert (await line.answer()).body == alone.body
    assert (await ask(line, question)).body == alone.body


async def test_the_rest_of_another_request_is_no_question(line: RawConnection, question: bytes) -> None:
    for _ in range(2):
        assert (await ask(line, question)).status == 200
    line.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Told: ")
    await line.sent()
    await settle()
    assert (await ask(line, question)).status == 400  # its Host is the second one


async def test_whoever_wants_the_connection_closed_gets_that_every_time(
    service: Service, question: bytes, again: list[bool]
) -> None:
    asked = question.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    for _ in range(2):
        async with connection_to(service) as connection:
            assert (await ask(connection, asked)).header("connection") == "close"
            assert await connection.rest() == b""
    assert again == [False, False]


async def test_failures_are_found_out_every_time(line: RawConnection, studio: Studio, again: list[bool]) -> None:
    refused = a_list(studio, headers={"Factor": "another"})
    for _ in range(2):
        assert (await ask(line, refused)).status == 401
    assert again == [False, False]


# -- what goes on as ever -----------------------------------------------------------------------------


async def test_every_answer_is_counted_and_logged_under_its_own_id(
    line: RawConnection, question: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[logs.RequestLine] = []
    figures: list[Mapping[str, object]] = []
    monkeypatch.setattr(logs.request_lines, "tell", lines.append)
    monkeypatch.setattr(Metrics, "observe", lambda _, **figure: figures.append(figure))
    answers = [await ask(line, question) for _ in range(3)]
    assert [line.request_id for line in lines] == [answer.header("x-request-id") for answer in answers]
    assert {(line.endpoint, line.method, line.status, line.source) for line in lines} == {
        ("oauth.userinfo", "GET", 200, "127.0.0.1")
    }
    assert [(figure["endpoint"], figure["status"]) for figure in figures] == [("oauth.userinfo", 200)] * 3


async def test_a_source_may_ask_no_more_often_for_asking_the_same(installed_url: str, tmp_path: Path) -> None:
    async with running_service(installed_url, tmp_path, environment={"GATEHOUSE__RATES__ADMIN": "6"}) as service:
        studio = await a_studio(service)
        async with connection_to(service) as connection:
            statuses = [(await ask(connection, a_list(studio))).status for _ in range(10)]
    assert statuses == [200] * 6 + [429] * 4


async def test_a_person_may_ask_no_more_often_from_two_places(installed_url: str, tmp_path: Path) -> None:
    environment = {"GATEHOUSE__RATES__ADMIN": "6", "GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.0/8"}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        studio = await a_studio(service)
        asked = [a_list(studio, headers={"X-Forwarded-For": f"192.0.2.{number}"}) for number in (1, 2)]
        async with connection_to(service) as connection:
            statuses = [(await ask(connection, asked[number % 2])).status for number in range(10)]
            assert statuses == [200] * 6 + [429] * 4
            await service.clock.advance(10)
            assert [(await ask(connection, asked[number % 2])).status for number in range(2)] == [200, 429]


async def test_what_is_kept_is_bounded(
    line: RawConnection, question: bytes, again: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 3_000  # more than one answer, less than two
    monkeypatch.setattr(repeated, "KEPT_BYTES", size)
    other = question.replace(b"\r\n\r\n", b"\r\nAccept: */*\r\n\r\n")
    for asked in (question, question, other, other, question):
        assert (await ask(line, asked)).status == 200
    assert again == [False, True, False, True, False]
