"""Batch equal statements of concurrent requests to PostgreSQL (docs/decisions/0024-asked-together.md).

A round trip costs this process nearly the same for one query as for twenty. So a statement that is needed several
times in one turn of the event loop, or while others are running, is sent once with all parameters. Each query still
sees the newest committed state, and its writes are committed before the result is returned.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Any, Final, TypeAlias

import asyncpg
from msgspec import Struct

from gatehouse.kernel.errors import Unavailable
from gatehouse.storage.statements import BatchedStatement, Row

MAX_BATCH_SIZE: Final = 64
MAX_ACTIVE_WORKERS: Final = 2  # workers that do not wait for a lock; more of them would only make batches smaller
MAX_BATCHES: Final = 256  # batches per connection, which is checked when it is returned to the pool
IDLE_SECONDS: Final = 0.02  # that a worker waits for more; taking a connection from the pool costs more than a query
SLOW_SECONDS: Final = 0.005  # a slower statement may be waiting for a lock; the others do not wait for it

Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]  # asyncpg has no types


class QueuedQuery(Struct, frozen=True):
    parameters: list[object]
    result: asyncio.Future[list[Row]]
    queued_at: float

    def succeed(self, rows: list[Row]) -> None:
        if not self.result.done():  # the caller may have been canceled
            self.result.set_result(rows)

    def fail(self, error: Exception) -> None:
        if not self.result.done():
            self.result.set_exception(error)


class StatementBatcher:
    def __init__(self, connecting: Connect, *, max_workers: int, queue_timeout: float) -> None:
        self.connect = connecting
        self._max_workers = max_workers  # workers, each with its own connection
        self._queue_timeout = queue_timeout  # seconds that a query waits for a worker
        self._loop = asyncio.get_running_loop()
        self._queue: dict[BatchedStatement, list[QueuedQuery]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._idle: list[asyncio.Future[bool]] = []  # workers that wait with their connection
        self._active_workers = 0
        self._start: asyncio.Handle | None = None
        self._timeout_check: asyncio.TimerHandle | None = None

    async def execute(self, statement: BatchedStatement, parameters: Mapping[str, object]) -> list[Row]:
        """Run one query in a batch. Raises what the driver raises for this query."""
        question = QueuedQuery(statement.driver_values(parameters), self._loop.create_future(), self._loop.time())
        self._queue.setdefault(statement, []).append(question)
        self._start_soon()  # later: more queries may arrive in this turn of the event loop
        return await question.result

    def next_batch(self) -> tuple[BatchedStatement, list[QueuedQuery]] | None:
        """Return the next batch for a worker; None when the worker may stop."""
        if not self._queue or self._active_workers > MAX_ACTIVE_WORKERS:
            return None
        statement = next(iter(self._queue))
        questions = self._queue.pop(statement)
        if len(questions) > MAX_BATCH_SIZE:
            self._queue[statement] = questions[MAX_BATCH_SIZE:]  # moved to the end of the queue
        return statement, questions[:MAX_BATCH_SIZE]

    async def wait_for_queries(self) -> bool:
        """Wait a moment for a query; False when the worker should end."""
        awaited: asyncio.Future[bool] = self._loop.create_future()
        self._idle.append(awaited)
        timer = self._loop.call_later(IDLE_SECONDS, self._end_idle, awaited)
        try:
            return await awaited
        finally:
            timer.cancel()
            if awaited in self._idle:  # canceled
                self._idle.remove(awaited)

    def _end_idle(self, awaited: asyncio.Future[bool]) -> None:
        if awaited in self._idle:  # else it was given a query in the same turn of the event loop
            self._idle.remove(awaited)
            awaited.set_result(False)

    def change_active_workers(self, by: int) -> None:
        """Change the number of workers that do not wait for a lock by one."""
        self._active_workers += by
        self._start_soon()

    def fail_queued(self, error: Exception, *, queued_before: float) -> None:
        """Fail the queries that have waited since that time."""
        for statement, questions in list(self._queue.items()):
            self._queue[statement] = [question for question in questions if question.queued_at > queued_before]
            if not self._queue[statement]:
                del self._queue[statement]
            for question in questions:
                if question.queued_at <= queued_before:
                    question.fail(error)

    def _start_soon(self) -> None:
        if self._queue and self._start is None:
            self._start = self._loop.call_soon(self._start_worker)

    def _start_worker(self) -> None:
        self._start = None
        if not self._queue or self._active_workers >= MAX_ACTIVE_WORKERS:
            return  # running workers will take the query
        while self._idle:
            awaited = self._idle.pop()
            if not awaited.done():  # else its worker was canceled
                awaited.set_result(True)
                return
        if len(self._workers) < self._max_workers:
            # The worker has its own context, because it does not belong to the request that started it.
            carrier = self._loop.create_task(BatchWorker(self).run(), name="asked-together", context=Context())
            self._workers.add(carrier)
            carrier.add_done_callback(self._worker_ended)
        elif self._timeout_check is None:
            self._timeout_check = self._loop.call_later(self._queue_timeout, self._fail_timed_out)

    def _worker_ended(self, carrier: asyncio.Task[None]) -> None:
        self._workers.discard(carrier)
        self._start_soon()

    def _fail_timed_out(self) -> None:
        self._timeout_check = None
        self.fail_queued(
            Unavailable("no database connection available"), queued_before=self._loop.time() - self._queue_timeout
        )
        self._start_soon()


class BatchWorker:
    """Runs batches on one connection while statements wait, up to MAX_BATCHES."""

    def __init__(self, batcher: StatementBatcher) -> None:
        self._batcher = batcher
        self._loop = asyncio.get_running_loop()
        self._is_active = False

    async def run(self) -> None:
        begin = self._loop.time()
        slow = self._mark_active()
        try:
            async with self._batcher.connect() as connection:
                slow = self._mark_active(slow)
                for _ in range(MAX_BATCHES):
                    group = self._batcher.next_batch()
                    if group is None:
                        slow.cancel()
                        self._mark_blocked()
                        if not await self._batcher.wait_for_queries() or connection.is_closed():
                            break
                        slow = self._mark_active()
                    else:
                        await run_batch(connection, *group)
                        slow = self._mark_active(slow)
        except Exception as error:  # noqa: BLE001 - every waiting caller must get an error
            self._batcher.fail_queued(error, queued_before=begin)
        finally:
            slow.cancel()
            self._mark_blocked()

    def _mark_active(self, slow: asyncio.TimerHandle | None = None) -> asyncio.TimerHandle:
        if slow is not None:
            slow.cancel()
        if not self._is_active:
            self._is_active = True
            self._batcher.change_active_workers(1)
        return self._loop.call_later(SLOW_SECONDS, self._mark_blocked)

    def _mark_blocked(self) -> None:
        if self._is_active:
            self._is_active = False
            self._batcher.change_active_workers(-1)


async def run_batch(connection: Any, statement: BatchedStatement, questions: list[QueuedQuery]) -> None:  # noqa: ANN401
    """Run one batch. Raises errors that make the connection unusable, after every caller got its error."""
    try:
        await run_batch_or_each(connection, statement, questions)
    except BaseException as error:  # the outcome of the batch is unknown
        fail_queries(questions, error if isinstance(error, Exception) else Unavailable("interrupted"))
        raise


async def run_batch_or_each(connection: Any, statement: BatchedStatement, questions: list[QueuedQuery]) -> None:  # noqa: ANN401
    """Run the batch in one transaction; if one query fails, which is rare, run each by itself."""
    try:
        results = await fetch_batch(connection, statement, questions)
    except asyncpg.PostgresConnectionError:  # the connection is not usable any more
        raise
    except (asyncpg.PostgresError, ValueError) as error:  # an error of a statement or parameter
        if len(questions) == 1:
            fail_queries(questions, error)
            return
        for question in questions:
            await run_batch_or_each(connection, statement, [question])
    else:
        for question, rows in zip(questions, results, strict=True):
            question.succeed(rows)


async def fetch_batch(connection: Any, statement: BatchedStatement, questions: list[QueuedQuery]) -> list[list[Row]]:  # noqa: ANN401
    for number, question in enumerate(questions):
        question.parameters[statement.number_index] = number
    rows = await connection.fetchmany(statement.compiled.sql, [question.parameters for question in questions])
    return statement.split_rows(rows, len(questions))


def fail_queries(questions: list[QueuedQuery], error: Exception) -> None:
    for question in questions:
        question.fail(error)
