"""Nodes that hold polls are killed or stopped: each answer is delivered once, and none is lost (R4, faults I4)."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from gatehouse.accounts.model import User
from gatehouse.gamesessions.model import GameSession
from gatehouse.storage.database import Storage, open_storage
from tests.faults.run_record import on_databases
from tests.support.builders import a_confirmation, a_record, a_user
from tests.support.game import GET_GSID
from tests.support.processes import Node, two_nodes
from tests.support.raw_http import RawConnection, raw_connection, send_request
from tests.support.service import FAST_SETTINGS

ALIVE: Final = b"GET /healthz HTTP/1.1\r\nHost: gatehouse.example\r\n\r\n"


def request(path: str, body: dict[str, object]) -> bytes:
    sent = json.dumps(body).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: gatehouse.example\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(sent)}\r\n\r\n"
    ).encode() + sent


async def register_session(node: Node) -> tuple[str, str]:
    """Register a session; return the gsid and the poll path."""
    response = await send_request(node.port, request(GET_GSID, {"factor": "f"}))
    assert response.status == 200, response
    return json.loads(response.body)["gsid"], response.header("location") or ""


async def poll_until_answered(port: int, gsid: str, where: str) -> tuple[int, dict[str, Any]]:
    response = await send_request(port, request(where, {"gsid": gsid}))
    return response.status, json.loads(response.body)


@asynccontextmanager
async def held_poll(node: Node, gsid: str, where: str, url: str) -> AsyncIterator[RawConnection]:
    """Start a poll and wait until the database shows that this node holds it."""
    async with raw_connection(node.port) as connection, open_storage(url, migrate=False) as storage:
        before = await read_session(storage, gsid)
        connection.send(request(where, {"gsid": gsid}))
        while (await read_session(storage, gsid)).polls == before.polls:
            await send_request(node.port, ALIVE)  # so that the node's loop has run since
        yield connection


async def read_session(storage: Storage, gsid: str) -> GameSession:
    session = await storage.game_sessions.find_session(gsid, 0)
    assert session is not None
    return session


async def create_someone(url: str) -> User:
    async with open_storage(url, migrate=False) as storage:
        user = a_user()
        await storage.accounts.create_user(user, a_record())
        return user


async def confirm(url: str, gsid: str, user: User) -> None:
    async with open_storage(url, migrate=False) as storage:
        session = await read_session(storage, gsid)
        confirmation = a_confirmation(gsid, user)
        assert await storage.game_sessions.confirm_session(confirmation, session.created_at, a_record())


@on_databases("postgres", "migrated_url")
async def test_kill_9_of_the_holder_leaves_the_answer_deliverable(migrated_url: str, tmp_path: Path) -> None:
    user = await create_someone(migrated_url)
    with Node(data=tmp_path, database_url=migrated_url, environment=FAST_SETTINGS) as node:
        gsid, where = await register_session(node)
        async with held_poll(node, gsid, where, migrated_url):
            node.kill()
        await confirm(migrated_url, gsid, user)
        node.start()
        status, body = await poll_until_answered(node.port, gsid, where)
        assert (status, body["status"], body["user_id"]) == (200, "OK", user.user_id)
        assert (await poll_until_answered(node.port, gsid, where))[0] == 403


@on_databases("postgres", "migrated_url")
async def test_op_07_a_signal_answers_held_polls_with_retry_and_loses_no_session(
    migrated_url: str, tmp_path: Path
) -> None:
    user = await create_someone(migrated_url)
    with Node(data=tmp_path, database_url=migrated_url, environment=FAST_SETTINGS) as node:
        gsid, where = await register_session(node)
        async with held_poll(node, gsid, where, migrated_url) as poll:
            node.process.send(signal.SIGTERM)
            response = await poll.read_response()
            assert (response.status, json.loads(response.body)["status"]) == (200, "RETRY")
        assert await asyncio.to_thread(node.process.wait, 35.0) == 0
        node.start()
        await confirm(migrated_url, gsid, user)
        assert (await poll_until_answered(node.port, gsid, where))[1]["status"] == "OK"


async def test_a_poll_at_one_node_is_woken_by_a_login_at_another(migrated_postgres_url: str, tmp_path: Path) -> None:
    user = await create_someone(migrated_postgres_url)
    with two_nodes(data=tmp_path, database_url=migrated_postgres_url, environment=FAST_SETTINGS) as (here, there):
        gsid, where = await register_session(here)
        async with held_poll(there, gsid, where, migrated_postgres_url) as poll:
            await confirm(migrated_postgres_url, gsid, user)
            assert json.loads((await poll.read_response()).body)["status"] == "OK"


async def test_only_one_of_many_polls_at_two_nodes_gets_the_result(
    migrated_postgres_url: str, tmp_path: Path
) -> None:
    user = await create_someone(migrated_postgres_url)
    environment = {**FAST_SETTINGS, "GATEHOUSE__GAME__EARLY_POLLS": "100"}
    with two_nodes(data=tmp_path, database_url=migrated_postgres_url, environment=environment) as nodes:
        for _ in range(5):
            gsid, where = await register_session(nodes[0])
            polls = [
                asyncio.create_task(poll_until_answered(node.port, gsid, where)) for node in nodes for _ in range(6)
            ]
            await confirm(migrated_postgres_url, gsid, user)
            replies = [await poll for poll in polls]
            assert [one["status"] for _, one in replies].count("OK") == 1
            assert {(status, one["status"]) for status, one in replies} <= {
                (200, "OK"),
                (200, "RETRY"),
                (403, "ERROR"),
            }


async def status_of(poll: RawConnection) -> str:
    status: str = json.loads((await poll.read_response()).body)["status"]
    return status


@asynccontextmanager
async def several_polls(node: Node, gsid: str, where: str) -> AsyncIterator["asyncio.Task[str]"]:
    """Send several polls at once; return the one that stays, because each new poll ends the previous one."""
    async with AsyncExitStack() as connections:
        polls = [await connections.enter_async_context(raw_connection(node.port)) for _ in range(4)]
        for poll in polls:
            poll.send(request(where, {"gsid": gsid}))
        pending = {asyncio.create_task(status_of(poll)) for poll in polls}
        while len(pending) > 1:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            assert {poll.result() for poll in done} == {"RETRY"}
        yield pending.pop()


async def test_the_newest_poll_wins_between_nodes_however_many_are_not_stored_yet_and_anyone_who_dies(
    migrated_postgres_url: str, tmp_path: Path
) -> None:
    user = await create_someone(migrated_postgres_url)
    environment = {**FAST_SETTINGS, "GATEHOUSE__GAME__EARLY_POLLS": "100"}
    with two_nodes(data=tmp_path, database_url=migrated_postgres_url, environment=environment) as (here, there):
        gsid, where = await register_session(here)
        async with raw_connection(there.port) as newest, several_polls(here, gsid, where) as older:
            newest.send(request(where, {"gsid": gsid}))
            assert await older == "RETRY"  # immediately, as on a single node
            await confirm(migrated_postgres_url, gsid, user)
            assert await status_of(newest) == "OK"

        gsid, where = await register_session(here)
        async with held_poll(there, gsid, where, migrated_postgres_url):
            there.kill()
        await confirm(migrated_postgres_url, gsid, user)
        assert (await poll_until_answered(here.port, gsid, where))[1]["status"] == "OK"
