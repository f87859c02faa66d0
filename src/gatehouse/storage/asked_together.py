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
from gatehouse.storage.statements import Numbered, Row

GROUP_SIZE: Final = 64
MOVING: Final = 2  # carriers that nothing holds up; with more of them the groups would only be smaller
TRIPS: Final = 256  # with one connection: whether it is still good is seen when it is given back
SLOW_SECONDS: Final = 0.005  # whoever takes this long may be waiting for a lock, and the others do not wait with him

Connecting: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]  # asyncpg has no types


@dataclass(frozen=True, slots=True)
class Question:
    values: list[object]
    answer: asyncio.Future[list[Row]]
    since: float

    def succeed(self, rows: list[Row]) -> None:
        if not self.answer.done():  # whoever asked may have gone
            self.answer.set_result(rows)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class AskedTogether:
    def __init__(self, connecting: Connecting, *, most: int, patience: float) -> None:
        self.connecting = connecting
        self._most = most  # carriers, each with a connection of its own
        self._patience = patience  # seconds that a question waits for one of them
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Numbered, list[Question]] = {}
        self._carriers: set[asyncio.Task[None]] = set()
        self._moving = 0
        self._start: asyncio.Handle | None = None
        self._shedding: asyncio.TimerHandle | None = None

    async def ask(self, statement: Numbered, parameters: Mapping[str, object]) -> list[Row]:
        """Raises what the driver raises for this question."""
        question = Question(statement.values(parameters), self._loop.create_future(), self._loop.time())
        self._waiting.setdefault(statement, []).append(question)
        self._start_soon()  # not now: others may ask in this turn of the loop
        return await question.answer

    def next_group(self) -> tuple[Numbered, list[Question]] | None:
        """What a carrier takes along; None when it may go home."""
        if not self._waiting or self._moving > MOVING:
            return None
        statement = next(iter(self._waiting))
        questions = self._waiting.pop(statement)
        if len(questions) > GROUP_SIZE:
            self._waiting[statement] = questions[GROUP_SIZE:]  # at the end of the line
        return statement, questions[:GROUP_SIZE]

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
        if not self._waiting or self._moving >= MOVING:
            return  # those under way will take it along
        if len(self._carriers) < self._most:
            # In a context of its own, for it does not work for the request that made it start.
            carrier = self._loop.create_task(Carrier(self).carry(), name="asked-together", context=Context())
            self._carriers.add(carrier)
            carrier.add_done_callback(self._came_home)
        elif self._shedding is None:
            self._shedding = self._loop.call_later(self._patience, self._shed)

    def _came_home(self, carrier: asyncio.Task[None]) -> None:
        self._carriers.discard(carrier)
        self._start_soon()

    def _shed(self) -> None:
        self._shedding = None
        self.fail(Unavailable("no database connection available"), since=self._loop.time() - self._patience)
        self._start_soon()


class Carrier:
    """Goes to and fro with one connection as long as somebody waits, but not for ever."""

    def __init__(self, together: AskedTogether) -> None:
        self._together = together
        self._loop = asyncio.get_running_loop()
        self._is_moving = False

    async def carry(self) -> None:
        begin = self._loop.time()
        slow = self._set_out()
        try:
            async with self._together.connecting() as connection:
                slow = self._set_out(slow)
                for _ in range(TRIPS):
                    group = self._together.next_group()
                    if group is None:
                        break
                    await answer(connection, *group)
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


async def answer(connection: Any, statement: Numbered, questions: list[Question]) -> None:  # noqa: ANN401
    """Raises what ends the use of the connection, after everybody was told."""
    try:
        await answer_each(connection, statement, questions)
    except BaseException as error:  # what became of it, nobody knows
        fail_all(questions, error if isinstance(error, Exception) else Unavailable("interrupted"))
        raise


async def answer_each(connection: Any, statement: Numbered, questions: list[Question]) -> None:  # noqa: ANN401
    """One transaction for all; when one of them goes wrong, which is rare, each by itself."""
    try:
        found = await ask_all(connection, statement, questions)
    except asyncpg.PostgresConnectionError:  # nothing more goes over it
        raise
    except (asyncpg.PostgresError, ValueError) as error:  # what a statement or a parameter of it met
        if len(questions) == 1:
            fail_all(questions, error)
            return
        for question in questions:
            await answer_each(connection, statement, [question])
    else:
        for question, rows in zip(questions, found, strict=True):
            question.succeed(rows)


async def ask_all(connection: Any, statement: Numbered, questions: list[Question]) -> list[list[Row]]:  # noqa: ANN401
    for number, question in enumerate(questions):
        question.values[statement.place] = number
    rows = await connection.fetchmany(statement.compiled.sql, [question.values for question in questions])
    return statement.rows_of(rows, len(questions))


def fail_all(questions: list[Question], error: Exception) -> None:
    for question in questions:
        question.fail(error)
