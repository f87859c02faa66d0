"""How long a response is cached, and how often the service is called."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from gatehouse.client.credentials import AccessKey
from gatehouse.client.errors import Denied, Unauthenticated, Unavailable
from gatehouse.client.permissions import PermissionCache
from gatehouse.client.transport import Reply, Request
from gatehouse.client.verification import User
from tests.support.clock import MovableClock, run_ready_tasks

ANNA = User(user_id="1", jwt="a.b.c")
BEN = User(user_id="2", jwt="d.e.f")


def reply_with_rules(*rules: str, user_id: str = "1", **more: object) -> Reply:
    body = {"status": "OK", "data": rules, "user_id": user_id, "expired": 0, "max_age": 2, **more}
    return Reply(status=200, etag='"tag"', body=msgspec.json.encode(body))


@dataclass
class FixedService:
    """A service with one response, sent when the test allows it."""

    reply: Reply = field(default_factory=lambda: reply_with_rules("kick"))
    asked: list[Request] = field(default_factory=list)
    open: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, request: Request) -> Reply:
        if b'"roles"' in request.body:
            return Reply(status=200, body=b'{"status":"OK"}')  # it accepts the key
        self.asked.append(request)
        reply = self.reply  # as it was when the request came
        await self.open.wait()
        return reply

    async def close(self) -> None:
        pass


@dataclass
class Case:
    clock: MovableClock
    service: FixedService
    lists: PermissionCache

    async def allows(self, rule: str = "kick", user: User = ANNA) -> bool:
        return (await self.lists.get(user)).allows(rule)


@pytest.fixture
def a_case() -> Callable[..., Case]:
    def make(**changes: Any) -> Case:
        clock, service = MovableClock(), FixedService()
        service.open.set()
        wanted = {"most": 10, "stale_seconds": 0, **changes}
        lists = PermissionCache(
            base_url="https://sso.example",
            application_id=50001,
            credential=AccessKey("k" * 64),
            transport=service,
            clock=clock,
            **wanted,
        )
        return Case(clock=clock, service=service, lists=lists)

    return make


async def test_many_who_ask_at_once_are_one_question(a_case: Callable[..., Case]) -> None:
    case = a_case()
    case.service.open.clear()
    asking = [asyncio.create_task(case.allows()) for _ in range(10)]
    await run_ready_tasks()
    asking[0].cancel()  # a canceled caller does not affect the others
    await run_ready_tasks()
    case.service.open.set()
    assert await asyncio.gather(*asking[1:]) == [True] * 9
    assert len(case.service.asked) == 1


async def test_late_caller_does_not_share_an_outdated_request(a_case: Callable[..., Case]) -> None:
    case = a_case()
    case.service.open.clear()
    early = asyncio.create_task(case.allows())
    await run_ready_tasks()
    case.service.reply = reply_with_rules()
    await case.clock.advance(2)
    late = asyncio.create_task(case.allows())
    await run_ready_tasks()
    case.service.open.set()
    assert await early
    assert not await late
    assert len(case.service.asked) == 2


async def test_the_way_of_the_answer_counts_as_its_age(a_case: Callable[..., Case]) -> None:
    case = a_case()
    case.service.open.clear()
    slow = asyncio.create_task(case.allows())
    await run_ready_tasks()
    await case.clock.advance(1.5)
    case.service.open.set()
    assert await slow
    await case.clock.advance(0.5)
    await case.allows()
    assert len(case.service.asked) == 2


async def test_list_without_max_age_is_revalidated_on_every_check(a_case: Callable[..., Case]) -> None:
    case = a_case()
    case.service.reply = reply_with_rules("kick", max_age=0)
    for _ in range(3):
        assert await case.allows()
        await case.clock.advance(0.001)
    assert len(case.service.asked) == 3
    assert "If-None-Match" not in case.service.asked[0].headers
    assert case.service.asked[1].headers["If-None-Match"] == '"tag"'


async def test_an_answer_ends_with_the_first_thing_in_it_even_while_the_service_is_silent(
    a_case: Callable[..., Case],
) -> None:
    case = a_case(stale_seconds=60)
    case.service.reply = reply_with_rules("kick", max_age=300, expired=case.clock.now() + 10)
    assert await case.allows()
    case.service.reply = Reply(status=503)
    await case.clock.advance(9)
    assert await case.allows()
    await case.clock.advance(1)
    with pytest.raises(Unavailable):
        await case.allows()


async def test_the_least_recently_seen_are_forgotten_first(a_case: Callable[..., Case]) -> None:
    case = a_case(most=2)
    people = [User(user_id="1", jwt=f"a.b.{number}") for number in range(3)]
    for user in (people[0], people[1], people[0], people[2], people[0]):
        assert await case.allows(user=user)
    assert len(case.service.asked) == 3
    assert await case.allows(user=people[1])
    assert len(case.service.asked) == 4


async def test_two_jwts_or_addresses_of_one_person_are_two_questions(a_case: Callable[..., Case]) -> None:
    case = a_case()
    for user in (ANNA, User(user_id="1", jwt="a.b.d"), User(user_id="1", jwt="a.b.c", address="192.0.2.7")):
        assert await case.allows(user=user)
    assert len(case.service.asked) == 3


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=401), Unauthenticated),
        (Reply(status=403), Denied),
        (Reply(status=404), Denied),
        (Reply(status=200, body=b'{"status":"ERROR","error":"invalid token"}'), Unauthenticated),
        (Reply(status=200, body=b'{"status":"ERROR","error":"No right."}'), Denied),
        (reply_with_rules("kick", user_id="2"), Denied),
        (Reply(status=304), Unavailable),
        (Reply(status=307), Unavailable),
        (Reply(status=400), Unavailable),
        (Reply(status=429), Unavailable),
        (Reply(status=500), Unavailable),
        (Reply(status=200, body=b"<html>"), Unavailable),
        (Reply(status=200, body=b'{"status":"OK","data":{"rules":["kick"]},"user_id":"1"}'), Unavailable),
        (Reply(status=200, body=b'{"data":["kick"],"user_id":"1"}'), Unavailable),
    ],
)
async def test_whatever_is_no_answer_allows_nothing(
    a_case: Callable[..., Case], reply: Reply, error: type[Exception]
) -> None:
    case = a_case(stale_seconds=60)
    case.service.reply = reply
    with pytest.raises(error):
        await case.allows()
    case.service.reply = reply_with_rules("kick")
    assert await case.allows()
    await case.clock.advance(2)
    case.service.reply = reply
    if error is Unavailable:
        assert await case.allows()
    else:
        with pytest.raises(error):
            await case.allows()


async def test_each_person_has_an_answer_of_their_own(a_case: Callable[..., Case]) -> None:
    case = a_case()
    assert await case.allows()
    case.service.reply = reply_with_rules(user_id="2")
    assert not await case.allows(user=BEN)
    assert await case.allows()
