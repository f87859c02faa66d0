"""SQLite as a node of the simulation uses it: the real runner and writer, over a disk and connection that fail."""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import apsw

from gatehouse.kernel.errors import OutcomeUnknown, Unavailable
from gatehouse.storage.runner import Listener, VerbFactory
from gatehouse.storage.sqlite.runner import GroupCommitWriter, SQLiteRunner
from gatehouse.storage.statements import Verb
from tests.faults.disk import FaultyDisk
from tests.faults.simulation.virtual import Chance, pass_time

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOdds:
    """The probability of each fault, from 0 to 1."""

    refused: float = 0.0  # nothing was done, and the caller gets an error
    lost: float = 0.0  # it was done, and the caller gets an error
    disk: float = 0.0  # the disk fails during a commit
    deaf: float = 0.0  # a notification is lost
    longest: float = 0.2  # most seconds of each way to the store and back


class LoopWriter:
    """Replace the writer's thread: its tasks run on the loop, one writer of the file at a time."""

    def __init__(
        self, writer: GroupCommitWriter, others: list["LoopWriter"], disk: FaultyDisk, chance: Chance, odds: FaultOdds
    ) -> None:
        self._writer = writer
        self._others = others
        self._disk = disk
        self._chance = chance
        self._odds = odds
        self.is_gone = False
        others.append(self)

    def put(self, task: Callable[[], None] | None) -> None:
        if task is not None:
            self._run_soon(task)

    def kill(self) -> None:
        """Roll back the current task and drop the waiting ones, as a killed process does."""
        self.is_gone = True
        self._others.remove(self)
        self._writer._idle_check.cancel()
        self._writer._connection.close()

    @property
    def is_writing(self) -> bool:
        return bool(self._writer._connection.in_transaction)

    def _run_soon(self, task: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(self._chance.random() * self._odds.longest / 10, self._run, task)

    def _run(self, task: Callable[[], None]) -> None:
        if self.is_gone:
            return
        if any(other.is_writing for other in self._others if other is not self):
            self._run_soon(task)  # SQLite would block, and here nothing may
            return
        if self._chance.random() < self._odds.disk:
            self._disk.write_failure = self._chance.choice((apsw.FullError, apsw.IOError))
        try:
            task()
        finally:
            self._disk.write_failure = None


def threadless_runner(
    path: str, others: list[LoopWriter], disk: FaultyDisk, chance: Chance, odds: FaultOdds
) -> tuple[SQLiteRunner, LoopWriter]:
    """A runner whose writer has no thread."""
    runner = SQLiteRunner(path)
    writer: Any = runner._writer
    writer._tasks.put(None)
    writer._thread.join()
    writer._tasks = commits = LoopWriter(writer, others, disk, chance, odds)
    return runner, commits


class FaultyRunner:
    """A runner behind a connection that delays or loses requests and responses."""

    def __init__(self, inner: SQLiteRunner, commits: LoopWriter, chance: Chance, odds: FaultOdds) -> None:
        self._inner = inner
        self._commits = commits
        self._chance = chance
        self._odds = odds
        self._listeners: dict[str, dict[Listener, None]] = {}

    async def write(
        self,
        make: VerbFactory[T],
        *,
        inline: bool = False,
        heavy: bool = False,
        single_statement: VerbFactory[T] | None = None,
        repeatable: bool = False,
    ) -> T:
        await self._delay()
        self._fail_sometimes(self._odds.refused, "the way there was cut")
        try:
            return await self._inner.write(
                make, inline=inline, heavy=heavy, single_statement=single_statement, repeatable=repeatable
            )
        finally:
            await self._delay()
            self._fail_sometimes(self._odds.lost, "the way back was cut", OutcomeUnknown)

    async def read(self, make: Callable[[], Verb[T]]) -> T:
        await self._delay()
        self._fail_sometimes(self._odds.refused, "the way there was cut")
        seen = await self._inner.read(make)
        await self._delay()
        return seen

    async def cached_read(self, key: Hashable, make: Callable[[], Verb[T]]) -> T:
        await self._delay()
        return await self._inner.cached_read(key, make)

    async def snapshot_read(self, make: Callable[[], Verb[T]]) -> T:
        await self._delay()
        return await self._inner.snapshot_read(make)

    def listen(self, channel: str, listener: Listener) -> Callable[[], None]:
        """Notify a channel's listeners in the order they came; the runner's set has a random order."""
        if channel not in self._listeners:
            self._listeners[channel] = {}
            self._inner.listen(channel, partial(self._hear, channel))
        self._listeners[channel][listener] = None
        return lambda: self._listeners[channel].pop(listener, None)

    def _hear(self, channel: str, payload: str) -> None:
        for listener in list(self._listeners[channel]):
            if self._chance.random() >= self._odds.deaf and not self._commits.is_gone:
                asyncio.get_running_loop().call_later(self._random_delay(), listener, payload)

    async def revision(self) -> str:
        return await self._inner.revision()

    async def database_time(self) -> int | None:
        return None

    async def timeline(self) -> str | None:
        return None

    def connection_counts(self) -> Mapping[str, int]:
        return {}

    def on_promotion(self, known: str, handle: Callable[[str], Verb[object]]) -> None:
        """Never call the listener: there is one timeline."""

    async def close(self) -> None:
        """Do nothing: the code that made the node ends it."""

    def _random_delay(self) -> float:
        return self._chance.random() * self._odds.longest

    async def _delay(self) -> None:
        await pass_time(self._random_delay())
        self._fail_sometimes(0.0, "")

    def _fail_sometimes(self, odds: float, what: str, error: type[Unavailable] = Unavailable) -> None:
        if self._commits.is_gone:
            raise Unavailable("the node is gone")
        if self._chance.random() < odds:
            raise error(what)
