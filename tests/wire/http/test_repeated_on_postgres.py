"""Whether an answer still holds is asked of PostgreSQL, and the request that waits for it is lost in no case."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from gatehouse import logs
from gatehouse.audit.model import Origin
from gatehouse.storage.moments import Moments
from gatehouse.web.lasting import LONGEST
from gatehouse.web.repeated import CREDIT_MOST, LEFT_OUT, Asking, RepeatedAnswers
from gatehouse.web.server import DEFAULT_LIMITS
from tests.support.clock import settle
from tests.support.moments import renewed
from tests.support.oauth import a_native_client
from tests.support.postgres import PostgresCluster, database_of
from tests.support.rawhttp import RawConnection, raw_connection
from tests.support.service import Service, running_service
from tests.support.sessions import session

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
async def service(installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with running_service(installed_postgres_url, tmp_path) as running:
        yield running


async def a_question(service: Service) -> bytes:
    """Userinfo, and what it answered is kept."""
    anna = await service.house.administration.create(
        login="anna@studio.example", nick="Anna", password="correct horse battery staple", origin=Origin(actor="test")
    )
    web = await a_native_client(service)
    tokens = await web.tokens(await web.granted(anna))
    await renewed(service.house.storage.runner)
    head = "GET /proxy/oauth/userinfo HTTP/1.1\r\nHost: localhost\r\n"
    asked = f"{head}Authorization: Bearer {tokens['access_token']}\r\n\r\n".encode()
    async with connection_to(service) as line:
        line.send(asked)
        assert (await line.answer()).status == 200
    return asked


@pytest.fixture
async def question(service: Service) -> bytes:
    return await a_question(service)


def connection_to(service: Service) -> AbstractAsyncContextManager[RawConnection]:
    return raw_connection(int(service.base_url.rpartition(":")[2]))


class Held:
    """PostgreSQL takes its time to tell the moment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        ask = Moments._ask

        async def held(moments: Moments) -> None:
            self.asked.set()
            await self.may_answer.wait()
            await ask(moments)

        monkeypatch.setattr(Moments, "_ask", held)


@pytest.fixture
def held(question: bytes, monkeypatch: pytest.MonkeyPatch) -> Held:
    assert question
    return Held(monkeypatch)


@asynccontextmanager
async def waiting_line(service: Service, question: bytes, held: Held) -> AsyncIterator[RawConnection]:
    """A connection whose request waits for the moment."""
    async with connection_to(service) as line:
        line.send(question)
        await held.asked.wait()
        yield line


async def test_it_is_not_answered_before_the_database_was_asked(
    service: Service, question: bytes, held: Held
) -> None:
    async with waiting_line(service, question, held) as line:
        answer = asyncio.create_task(line.answer())
        await settle()
        assert not answer.done()
        held.may_answer.set()
        assert (await answer).status == 200


async def test_what_follows_while_it_waits_is_answered_after_it(
    service: Service, question: bytes, held: Held
) -> None:
    async with waiting_line(service, question, held) as line:
        line.send(HEALTH)
        first, second = await line.answer(), await line.answer()
        assert b"nickname" in first.body
        assert b"nickname" not in second.body
        held.may_answer.set()
        line.send(question)
        assert (await line.answer()).body == first.body


async def test_who_leaves_while_it_waits_disturbs_nobody(service: Service, question: bytes, held: Held) -> None:
    async with connection_to(service) as leaving, connection_to(service) as staying:
        leaving.send(question)
        await held.asked.wait()
        leaving.leave()
        staying.send(question)
        await settle()
        held.may_answer.set()
        assert (await staying.answer()).status == 200


async def test_who_leaves_while_it_waits_counts_as_whoever_stays(
    installed_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"GATEHOUSE__RATES__TOKEN": "4"}
    async with running_service(installed_postgres_url, tmp_path, environment=environment) as service:
        question = await a_question(service)
        lines: list[logs.RequestLine] = []
        monkeypatch.setattr(logs.request_lines, "tell", lines.append)
        held = Held(monkeypatch)
        for _ in range(4):
            async with connection_to(service) as leaving:
                leaving.send(question)
                await held.asked.wait()
                leaving.leave()
            await settle()
        held.may_answer.set()
        async with connection_to(service) as line:
            line.send(question)
            assert (await line.answer()).status == 429
        assert [line.status for line in lines] == [200] * 2 + [429] * 3  # two were asked before


async def test_a_service_that_stops_answers_it_first(
    installed_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(running_service(installed_postgres_url, tmp_path))
        question = await a_question(service)
        held = Held(monkeypatch)
        async with connection_to(service) as line:
            line.send(question)
            await held.asked.wait()
            stopping = asyncio.create_task(stack.aclose())
            answer = await line.answer()
            assert (answer.status, answer.header("connection")) == (200, "close")
            await stopping


async def test_while_it_waits_the_client_owes_nothing(service: Service, question: bytes, held: Held) -> None:
    async with waiting_line(service, question, held) as line:
        await service.clock.advance(DEFAULT_LIMITS.idle + DEFAULT_LIMITS.head)
        held.may_answer.set()
        assert (await line.answer()).status == 200
        await service.clock.advance(DEFAULT_LIMITS.idle)
        assert await line.rest() == b""


async def test_without_the_database_it_is_told_what_all_others_are(
    service: Service, question: bytes, held: Held, postgres_cluster: PostgresCluster, installed_postgres_url: str
) -> None:
    name = database_of(installed_postgres_url)
    async with connection_to(service) as line, session(postgres_cluster.url()) as elsewhere:
        line.send(question)
        await held.asked.wait()
        await elsewhere.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await elsewhere.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        held.may_answer.set()
        assert (await line.answer()).status == 503


async def test_nothing_is_asked_about_an_answer_that_is_known_to_be_over(
    service: Service, question: bytes, installed_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[bool] = []
    learn = Asking.learn

    def noting(asking: Asking, *, held: bool) -> None:
        learned.append(held)
        learn(asking, held=held)

    monkeypatch.setattr(Asking, "learn", noting)
    others = [question.replace(b"\r\n\r\n", b"\r\nX-Number: %d\r\n\r\n" % number) for number in range(20)]
    async with connection_to(service) as line, session(installed_postgres_url) as elsewhere:

        async def ask_all() -> list[bool]:
            learned.clear()
            for one in others:
                line.send(one)
                assert (await line.answer()).status == 200
            return list(learned)

        await ask_all()
        assert await ask_all() == [True] * 20
        await elsewhere.execute("UPDATE users SET nick = 'Berta'")
        assert await ask_all() == [False]
        assert await ask_all() == [True] * 20
        await service.clock.advance(LONGEST)
        assert await ask_all() == []


async def test_a_fault_of_ours_while_it_waits_ends_the_connection(
    service: Service, question: bytes, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("no room for the log")

    monkeypatch.setattr(RepeatedAnswers, "again", broken)
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # it would tell of it, and so fail the test
    async with waiting_line(service, question, held) as line:
        held.may_answer.set()
        assert await line.rest() == b""


def test_while_asking_is_in_vain_most_questions_are_left_out() -> None:
    asking = Asking()

    def left_out_after(*, held: bool) -> int:
        asking.learn(held=held)
        return sum(1 for _ in iter(asking.pays, True))

    assert [left_out_after(held=False) for _ in range(CREDIT_MOST + 2)] == [0] * (CREDIT_MOST - 1) + [LEFT_OUT] * 3
    assert [left_out_after(held=True), left_out_after(held=False)] == [0, LEFT_OUT]
    assert [left_out_after(held=True) for _ in range(CREDIT_MOST + 1)] == [0] * (CREDIT_MOST + 1)
    assert [left_out_after(held=False) for _ in range(CREDIT_MOST)] == [0] * (CREDIT_MOST - 1) + [LEFT_OUT]
