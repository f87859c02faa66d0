"""Listen for notices of PostgreSQL, and detect when none arrive any more.

One connection listens, and every few seconds sends a notice to itself. While that does not arrive, because the
connection is lost, was never made, or carries no notices, listeners learn every few seconds that they may have missed
some. So nothing waits longer than that for a notice, and nothing polls while notices arrive.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import asyncpg
import structlog

from gatehouse.kernel.ids import new_request_id
from gatehouse.storage.listeners import PG_CHANNEL, Listeners, decode_notification, encode_notification
from gatehouse.storage.statements import Notification

log = structlog.get_logger(__name__)

HEARTBEAT: Final = "heartbeat"  # the channel; the payload names the process
HEARTBEAT_SECONDS: Final = 3.0
SILENT_AFTER_SECONDS: Final = 5.0  # without a heartbeat
FALLBACK_POLL_SECONDS: Final = 3.0  # between two checks while no notices arrive
RECONNECT_AFTER_SECONDS: Final = 15.0  # without a heartbeat: connect again
RETRY_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 1.0

CONNECTION_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


class NotificationListener:
    def __init__(self, listeners: Listeners, connect: Callable[[], Awaitable[Any]]) -> None:
        """`connect` opens a separate connection; asyncpg has no types."""
        self._listeners = listeners
        self._connect = connect
        self._name = new_request_id()
        self._last_heartbeat_at: float | None = None  # the last heartbeat; None: no notices arrive
        self._was_lost = False  # since the last heartbeat
        self._loop = asyncio.get_running_loop()
        self._tasks = [
            asyncio.create_task(self._listen(), name="postgres-listen"),
            asyncio.create_task(self._notify_missed_while_silent(), name="postgres-deaf"),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _is_silent(self) -> bool:
        return self._last_heartbeat_at is None or self._loop.time() - self._last_heartbeat_at > SILENT_AFTER_SECONDS

    async def _notify_missed_while_silent(self) -> None:
        while True:
            await asyncio.sleep(FALLBACK_POLL_SECONDS)
            if self._is_silent():
                self._listeners.notify_missed()

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_until_lost()
            except CONNECTION_ERRORS as error:
                log.warning("storage.listen_lost", reason=str(error))
            self._last_heartbeat_at, self._was_lost = None, True
            await asyncio.sleep(RETRY_SECONDS)

    async def _listen_until_lost(self) -> None:
        lost = asyncio.Event()
        connection = await self._connect()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(
                PG_CHANNEL, lambda _c, _p, _ch, text: self._on_notification(decode_notification(text))
            )
            since = self._loop.time()
            while not lost.is_set():
                await connection.execute(
                    "SELECT pg_notify($1, $2)", PG_CHANNEL, encode_notification(Notification(HEARTBEAT, self._name))
                )
                await wait_for_event(lost, HEARTBEAT_SECONDS)
                if self._loop.time() - (self._last_heartbeat_at or since) > RECONNECT_AFTER_SECONDS:
                    raise TimeoutError("the connection receives no notifications")
        finally:
            with suppress(*CONNECTION_ERRORS):  # otherwise an unresponsive server would hide the cancellation
                await connection.close(timeout=CLOSE_SECONDS)

    def _on_notification(self, notice: Notification) -> None:
        if notice.channel != HEARTBEAT:
            self._listeners.notify(notice)
        elif notice.payload == self._name:
            was_deaf = self._is_silent()
            self._last_heartbeat_at = self._loop.time()
            if was_deaf:  # notices may have been missed until now
                self._listeners.notify_missed()
            if self._was_lost:
                self._was_lost = False
                log.info("storage.listen_restored")


async def wait_for_event(event: asyncio.Event, within: float) -> bool:
    try:
        async with asyncio.timeout(within):
            return await event.wait()
    except TimeoutError:
        return False
