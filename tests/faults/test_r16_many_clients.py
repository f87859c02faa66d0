"""The cost of many clients that are held, reconnect repeatedly, or vanish (faults R-16, R-17, R-18).

`make bench` measures how many there may be and how much memory each takes.
"""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from websockets.asyncio.client import ClientConnection

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.gamesessions.model import POLL_HOLD_SECONDS
from gatehouse.gamesessions.poll import HOLD_JITTER
from gatehouse.web.server.server import TCP_KEEPALIVE_OPTIONS, enable_tcp_keepalive
from tests.support.browser import PASSWORD
from tests.support.echo import wait_until
from tests.support.game import ANNA, approve_in_storage, register_game, wait_until_held, wait_until_marks_stored
from tests.support.postgres_session import postgres_session
from tests.support.service import RunningService, running_service
from tests.support.websockets import connect_game_socket, wait_until_connected, wait_until_idle

MANY: Final = 60
BUSY: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gatehouse' AND state <> 'idle'"
UNLIMITED: Final = {"GATEHOUSE__RATES__ENABLED": "false", "GATEHOUSE__GAME__SOCKETS_PER_SOURCE": "1000"}
STEP: Final = 0.05  # seconds


@pytest.fixture
async def service(installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_postgres_url, tmp_path, environment=UNLIMITED) as running:
        yield running


@pytest.fixture
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


async def test_r_16_a_held_poll_takes_no_thread_and_no_connection_and_one_approval_wakes_one(
    service: RunningService, anna: User, installed_postgres_url: str
) -> None:
    games = [await register_game(service) for _ in range(MANY)]
    async with postgres_session(installed_postgres_url) as watcher:
        before = threading.active_count()
        polls = [game.start_poll() for game in games]
        await wait_until_held(service, MANY)
        looked = looks_of(service)
        await service.clock.advance(20)
        await wait_until_marks_stored(games[-1])
        assert looked == []  # held polls do not query the database
        assert threading.active_count() <= before
        assert await watcher.fetchval(BUSY) == 0
        await approve_in_storage(games[7], anna)
        assert (await polls[7]).json()["status"] == "OK"
        assert len(service.services.games.waiters) == MANY - 1
        assert len(looked) <= 2  # those of the approved session
    ends = [timer.due for timer in service.clock._timers if not timer.cancelled and timer.due <= POLL_HOLD_SECONDS]
    assert len(ends) == MANY - 1
    assert POLL_HOLD_SECONDS - HOLD_JITTER <= min(ends) < max(ends)
    # They end at different times.
    assert all(sum(end <= other < end + STEP for other in ends) < MANY / 2 for end in ends)
    await service.clock.advance(POLL_HOLD_SECONDS)
    assert {response.json()["status"] for response in await asyncio.gather(*polls)} == {"OK", "RETRY"}


def looks_of(service: RunningService) -> list[object]:
    """Record every database query about a game session from now on."""
    reads: list[object] = []
    store: Any = service.services.storage.game_sessions
    find = type(store).find_session

    async def count_and_run(gsid: str, now: int) -> Any:
        reads.append(gsid)
        return await find(store, gsid, now)

    store.find_session = count_and_run
    return reads


async def test_r_17_sockets_that_flap_write_next_to_nothing_and_leave_no_descriptor(
    installed_sqlite_url: str, tmp_path: Path
) -> None:
    async with running_service(installed_sqlite_url, tmp_path, environment=UNLIMITED) as service:
        games = [await register_game(service) for _ in range(10)]
        await open_and_close_sockets(service, games)
        before, writes = descriptors(), writes_of(service)
        for _ in range(5):
            await open_and_close_sockets(service, games)
        await wait_until(lambda: descriptors() <= before)
        assert len(writes) <= 3 * len(games)  # for fifty connections and fifty disconnections
        assert len(service.services.games.presence) == 0


async def open_and_close_sockets(service: RunningService, games: list[Any]) -> None:
    async with AsyncExitStack() as stack:
        sockets: list[ClientConnection] = [
            await stack.enter_async_context(connect_game_socket(game)) for game in games
        ]
        await wait_until_connected(service, len(sockets))
    await wait_until_connected(service, 0)
    await wait_until_idle(service)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def writes_of(service: RunningService) -> list[object]:
    writes: list[object] = []
    runner: Any = service.services.storage.runner
    write = runner.write

    async def count_and_run(make: object, **options: object) -> Any:
        writes.append(make)
        return await write(make, **options)

    runner.write = count_and_run
    return writes


def test_r_18_anyone_who_vanishes_without_a_word_is_noticed_within_a_minute() -> None:
    """TCP keepalive is set on every accepted connection; HT-03 tests slow clients (tests/adversarial)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        enable_tcp_keepalive(listener.fileno())
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            options = {
                name: accepted.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in TCP_KEEPALIVE_OPTIONS
            }
    assert options == TCP_KEEPALIVE_OPTIONS
    assert options["TCP_KEEPIDLE"] + options["TCP_KEEPINTVL"] * options["TCP_KEEPCNT"] <= 60
    assert options["TCP_USER_TIMEOUT"] <= 60_000
