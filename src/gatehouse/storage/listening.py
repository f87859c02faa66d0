"""Listens for notices of PostgreSQL, and notices when nothing is heard any more.

One connection listens, and every few seconds sends a notice to itself. While that is not heard, because the
connection is lost, never came, or carries no notices, listeners are told every few seconds that they may have missed
some. So nothing waits for a notice longer than that, and nothing is looked up at intervals while notices come.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import asyncpg
import structlog

from gatehouse.kernel.ids import new_request_id
from gatehouse.storage.notices import PLACE, Listeners, heard, spoken
from gatehouse.storage.statements import Notice

log = structlog.get_logger(__name__)

HEARTBEAT: Final = "heartbeat"  # the channel; the payload names the process
HEARTBEAT_SECONDS: Final = 3.0
DEAF_AFTER_SECONDS: Final = 5.0  # without a heartbeat
LOOK_SECONDS: Final = 3.0  # between two looks while nothing is heard
GIVE_UP_SECONDS: Final = 15.0  # without a heartbeat: another connection may do better
RETRY_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 1.0

LOST: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)


class Listening:
    def __init__(self, listeners: Listeners, connect: Callable[[], Awaitable[Any]]) -> None:
        """`connect`: makes a connection of its own; asyncpg has no types."""
        self._listeners = listeners
        self._connect = connect
        self._name = new_request_id()
        self._heard_at: float | None = None  # the last heartbeat; None: nothing is heard
        self._loop = asyncio.get_running_loop()
        self._tasks = [
            asyncio.create_task(self._listen(), name="postgres-listen"),
            asyncio.create_task(self._look_while_deaf(), name="postgres-deaf"),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _is_deaf(self) -> bool:
        return self._heard_at is None or self._loop.time() - self._heard_at > DEAF_AFTER_SECONDS

    async def _look_while_deaf(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._is_deaf():
                self._listeners.tell_all_to_look_again()

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_until_lost()
            except LOST as error:
                log.warning("storage.listen_lost", reason=str(error))
            self._heard_at = None
            await asyncio.sleep(RETRY_SECONDS)

    async def _listen_until_lost(self) -> None:
        lost = asyncio.Event()
        connection = await self._connect()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(PLACE, lambda _c, _p, _ch, text: self._hear(heard(text)))
            since = self._loop.time()
            while not lost.is_set():
                await connection.execute("SELECT pg_notify($1, $2)", PLACE, spoken(Notice(HEARTBEAT, self._name)))
                await happens(lost, HEARTBEAT_SECONDS)
                if self._loop.time() - (self._heard_at or since) > GIVE_UP_SECONDS:
                    raise TimeoutError("the connection receives no notifications")
        finally:
            with suppress(*LOST):  # else a server that answers no more would hide that we were told to end
                await connection.close(timeout=CLOSE_SECONDS)

    def _hear(self, notice: Notice) -> None:
        if notice.channel != HEARTBEAT:
            self._listeners.tell(notice)
        elif notice.payload == self._name:
            was_deaf = self._is_deaf()
            self._heard_at = self._loop.time()
            if was_deaf:  # notices may have been missed until now
                self._listeners.tell_all_to_look_again()


async def happens(event: asyncio.Event, within: float) -> bool:
    try:
        async with asyncio.timeout(within):
            return await event.wait()
    except TimeoutError:
        return False
