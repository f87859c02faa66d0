"""Questions of many requests, carried to PostgreSQL together (docs/decisions/0024-asked-together.md).

A round trip costs this process nearly the same whether it carries one question or twenty. So a statement that is
asked several times in one turn of the loop, or while others are under way, is sent once with the parameters of all
who ask. Each question still sees the newest committed state, and what it writes is committed before it is answered.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import asyncpg

from gatehouse.kernel.errors import Unavailable
from gatehouse.storage.statements import BatchedStatement, Row

MAX_BATCH_SIZE: Final = 64
MAX_ACTIVE_WORKERS: Final = 2  # carriers that nothing holds up; with more of them the groups would only be smaller
MAX_BATCHES: Final = 256  # with one connection: whether it is still good is seen when it is given back
SLOW_SECONDS: Final = 0.005  # whoever takes this long may be waiting for a lock, and the others do not wait with him

Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]  # asyncpg has no types


@dataclass(frozen=True, slots=True)
class QueuedQuery:
    values: list[object]
    answer: asyncio.Future[list[Row]]
    since: float

    def succeed(self, rows: list[Row]) -> None:
        if not self.answer.done():  # whoever asked may have gone
            self.answer.set_result(rows)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class StatementBatcher:
    def __init__(self, connecting: Connect, *, most: int, patience: float) -> None:
        self.connecting = connecting
        self._most = most  # carriers, each with a connection of its own
        self._patience = patience  # seconds that a question waits for one of them
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[BatchedStatement, list[QueuedQuery]] = {}
        self._carriers: set[asyncio.Task[None]] = set()
        self._moving = 0
        self._start: asyncio.Handle | None = None
        self._shedding: asyncio.TimerHandle | None = None

    async def ask(self, statement: BatchedStatement, parameters: Mapping[str, object]) -> list[Row]:
        """Raises what the driver raises for this question."""
        question = QueuedQuery(statement.values(parameters), self._loop.create_future(), self._loop.time())
        self._waiting.setdefault(statement, []).append(question)
        self._start_soon()  # not now: others may ask in this turn of the loop
        return await question.answer

    def next_group(self) -> tuple[BatchedStatement, list[QueuedQuery]] | None:
        """What a carrier takes along; None when it may go home."""
        if not self._waiting or self._moving > MAX_ACTIVE_WORKERS:
            return None
        statement = next(iter(self._waiting))
        questions = self._waiting.pop(statement)
        if len(questions) > MAX_BATCH_SIZE:
            self._waiting[statement] = questions[MAX_BATCH_SIZE:]  # at the end of the line
        return statement, questions[:MAX_BATCH_SIZE]

    def moves(self, by: int) -> None:
        """One carrier more, or one less, that nothing holds up."""
        self._moving += by
        self._start_soon()

    def fail(self, error: Exception, *, since: float) -> None:
        """Those who have waited since then."""
        for statement, questions in list(self._waiting.items()):
            self._waiting[statement] = [question for question in questions if question.since > since]
            if not self._waiting[statement]:
                del self._waiting[statement]
            for question in questions:
                if question.since <= since:
                    question.fail(error)

    def _start_soon(self) -> None:
        if self._waiting and self._start is None:
            self._start = self._loop.call_soon(self._start_carrier)

    def _start_carrier(self) -> None:
        self._start = None
        if not self._waiting or self._moving >= MAX_ACTIVE_WORKERS:
            return  # those under way will take it along
        if len(self._carriers) < self._most:
            # In a context of its own, for it does not work for the request that made it start.
            carrier = self._loop.create_task(BatchWorker(self).carry(), name="asked-together", context=Context())
            self._carriers.add(carrier)
            carrier.add_done_callback(self._came_home)
        elif self._shedding is None:
            self._shedding = self._loop.call_later(self._patience, self._shed)

    def _came_home(self, carrier: asyncio.Task[None]) -> None:
        self._carriers.discard(carrier)
        self._start_soon()

    def _shed(self) -> None:
        self._shedding = None
        self.fail(Unavailable("no connection became free"), since=self._loop.time() - self._patience)
        self._start_soon()


class BatchWorker:
    """Goes to and fro with one connection as long as somebody waits, but not for ever."""

    def __init__(self, together: StatementBatcher) -> None:
        self._together = together
        self._loop = asyncio.get_running_loop()
        self._is_moving = False

    async def carry(self) -> None:
        begin = self._loop.time()
        slow = self._set_out()
        try:
            async with self._together.connecting() as connection:
                slow = self._set_out(slow)
                for _ in range(MAX_BATCHES):
                    group = self._together.next_group()
                    if group is None:
                        break
                    await run_batch(connection, *group)
                    slow = self._set_out(slow)
        except Exception as error:  # noqa: BLE001 - whatever it was, nobody may be left waiting for it
            self._together.fail(error, since=begin)
        finally:
            slow.cancel()
            self._is_held_up()

    def _set_out(self, slow: asyncio.TimerHandle | None = None) -> asyncio.TimerHandle:
        if slow is not None:
            slow.cancel()
        if not self._is_moving:
            self._is_moving = True
            self._together.moves(1)
        return self._loop.call_later(SLOW_SECONDS, self._is_held_up)

    def _is_held_up(self) -> None:
        if self._is_moving:
            self._is_moving = False
            self._together.moves(-1)


async def run_batch(connection: Any, statement: BatchedStatement, questions: list[QueuedQuery]) -> None:  # noqa: ANN401
    """Raises what ends the use of the connection, after everybody was told."""
    try:
        await run_batch_or_each(connection, statement, questions)
    except BaseException as error:  # what became of it, nobody knows
        fail_queries(questions, error if isinstance(error, Exception) else Unavailable("cut short"))
        raise


async def run_batch_or_each(connection: Any, statement: BatchedStatement, questions: list[QueuedQuery]) -> None:  # noqa: ANN401
    """One transaction for all; when one of them goes wrong, which is rare, each by itself."""
    try:
        found = await fetch_batch(connection, statement, questions)
    except asyncpg.PostgresConnectionError:  # nothing more goes over it
        raise
    except (asyncpg.PostgresError, ValueError) as error:  # what a statement or a parameter of it met
        if len(questions) == 1:
            fail_queries(questions, error)
            return
        for question in questions:
            await run_batch_or_each(connection, statement, [question])
    else:
        for question, rows in zip(questions, found, strict=True):
            question.succeed(rows)


async def fetch_batch(connection: Any, statement: BatchedStatement, questions: list[QueuedQuery]) -> list[list[Row]]:  # noqa: ANN401
    for number, question in enumerate(questions):
        question.values[statement.place] = number
    rows = await connection.fetchmany(statement.compiled.sql, [question.values for question in questions])
    return statement.rows_of(rows, len(questions))


def fail_queries(questions: list[QueuedQuery], error: Exception) -> None:
    for question in questions:
        question.fail(error)
