"""Send notices after the commit of the transactions that they are about, one statement for all that wait.

A transaction that notifies takes one lock of the whole server at its commit, and has it until the commit is on disk:
commits that notify are never grouped. So no transaction that changes something notifies.

A process that ends between the two loses the notice. Nothing depends on it but the time: a held poll is then answered
at its end, and timers find the rest.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from itertools import islice
from typing import Any, Final, TypeAlias

import structlog

from gatehouse.kernel.errors import GatehouseError
from gatehouse.storage.listeners import PG_CHANNEL, encode_notification
from gatehouse.storage.statements import Notification

log = structlog.get_logger(__name__)

SEND: Final = "SELECT pg_notify($1, notice) FROM unnest($2::text[]) AS notice"
MAX_NOTICES: Final = 1_000  # in one statement
RETRY_SECONDS: Final = 0.5
CLOSE_SECONDS: Final = 1.0

Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]  # asyncpg has no types


class NotificationSender:
    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._pending: dict[Notification, None] = {}  # in order, each once
        self._task: asyncio.Task[None] | None = None

    def send(self, notices: Iterable[Notification]) -> None:
        self._pending.update(dict.fromkeys(notices))
        if self._pending and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._send_pending(), name="postgres-notify")

    async def close(self) -> None:
        """Send what is pending, for a moment."""
        if self._task is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._task

    async def _send_pending(self) -> None:
        try:
            while self._pending:
                batch = dict.fromkeys(islice(self._pending, MAX_NOTICES))
                for notice in batch:
                    del self._pending[notice]  # the same notice of a commit from now on is sent again
                try:
                    async with self._connect() as connection:
                        await connection.execute(SEND, PG_CHANNEL, [encode_notification(notice) for notice in batch])
                except GatehouseError as error:  # sent again when the database is back
                    self._pending = {**batch, **self._pending}
                    log.warning("storage.notices_not_sent", reason=str(error), count=len(self._pending))
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._task = None
