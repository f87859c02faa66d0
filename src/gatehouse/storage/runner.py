"""Run verbs: asynchronously on PostgreSQL, without ever waiting on SQLite.

A verb is a generator that yields statements and receives their rows. Inside `write` it is one transaction: **raising
rolls back, returning commits**. A verb that must store something and refuse therefore returns its refusal. No result
of a verb, a refusal included, is sent before the commit it depends on.
"""

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from gatehouse.storage.statements import Row, Verb, VerbStep

P = ParamSpec("P")
T = TypeVar("T")
Listener = Callable[[str], object]


VerbFactory: TypeAlias = Callable[[], Verb[T]]


class Runner(Protocol):
    """The interface of both databases for running verbs."""

    async def write(
        self,
        make: VerbFactory[T],
        *,
        inline: bool = False,
        heavy: bool = False,
        single_statement: VerbFactory[T] | None = None,
        repeatable: bool = False,
    ) -> T:
        """Run the verb as one transaction; it is run again from the start after a serialization failure.

        `inline` promises a few rows by key and nothing that grows: SQLite runs it on the event loop.
        `heavy` means that the verb computes with whole documents: it never runs on the event loop.
        `single_statement` is an equal verb for a remote database: its first statement does everything and returns a
        row, or returns none and has changed nothing. So it needs no transaction.
        `repeatable` promises that a second run recognizes what the first run committed and gives the same answer. So
        an unknown outcome is settled by running it again (docs/decisions/0030-unknown-outcomes.md).

        Raises OutcomeUnknown when the connection was lost during the commit and nothing could be learned since.
        """

    async def read(self, make: Callable[[], Verb[T]]) -> T:
        """Run a short read: key look-ups only, each statement seeing the newest committed state."""

    async def cached_read(self, key: Hashable, make: Callable[[], Verb[T]]) -> T:
        """Run a short read whose result object is cached until anything is written.

        It is cached only on SQLite, where checking that is cheaper than the read. `key` identifies the read.
        """

    async def snapshot_read(self, make: Callable[[], Verb[T]]) -> T:
        """Run a long read on one consistent snapshot, away from the event loop."""

    def listen(self, channel: str, listener: Listener) -> Callable[[], None]:
        """Call the listener with each payload on the channel; returns a function that ends this.

        An empty payload means that notices may have been missed: read everything again.
        """

    async def revision(self) -> str:
        """The schema revision the database holds, or "" for an empty database."""

    async def database_time(self) -> int | None:
        """The database's own clock in Unix seconds, or None when it has none but this machine's."""

    async def timeline(self) -> str | None:
        """The database's timeline, a new one after every promotion; None where there is only one."""

    def connection_counts(self) -> Mapping[str, int]:
        """Pooled connections: open, idle and the limit; empty where there is no pool."""

    def on_promotion(self, known: str, handle: Callable[[str], Verb[object]]) -> None:
        """Use no timeline other than `known` until `handle` has run on it.

        So no request sees the state that a promoted standby has missed. Until then everything is Unavailable.
        """

    async def close(self) -> None:
        """Finish running work and close the database."""


class SqlStore:
    """A package's store, bound to the runner that runs its verbs."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner


Method = Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]


def write(verb: Callable[P, Verb[T]], *, repeatable: bool = False) -> Method[P, T]:
    @wraps(verb)
    async def run(stored: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await stored.runner.write(partial(verb, *args, **kwargs), repeatable=repeatable)

    return run


def heavy_write(verb: Callable[P, Verb[T]]) -> Method[P, T]:
    """Run a write that reads, checks and writes whole schemas or records."""

    @wraps(verb)
    async def run(stored: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await stored.runner.write(partial(verb, *args, **kwargs), heavy=True)

    return run


def inline_write(
    verb: Callable[P, Verb[T]], *, single_statement: Callable[P, Verb[T]] | None = None, repeatable: bool = False
) -> Method[P, T]:
    """Run a frequent write of a few rows by key."""

    @wraps(verb)
    async def run(stored: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        twin = None if single_statement is None else partial(single_statement, *args, **kwargs)
        return await stored.runner.write(
            partial(verb, *args, **kwargs), inline=True, single_statement=twin, repeatable=repeatable
        )

    return run


def read(verb: Callable[P, Verb[T]]) -> Method[P, T]:
    @wraps(verb)
    async def run(stored: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await stored.runner.read(partial(verb, *args, **kwargs))

    return run


def cached_read(verb: Callable[P, Verb[T]]) -> Method[P, T]:
    """Run a frequent read; the verb's arguments must be hashable, and none of them may be the time."""

    @wraps(verb)
    async def run(stored: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await stored.runner.cached_read((verb, args, *kwargs.items()), partial(verb, *args, **kwargs))

    return run


def snapshot_read(verb: Callable[P, Verb[T]]) -> Method[P, T]:
    @wraps(verb)
    async def run(stored: SqlStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await stored.runner.snapshot_read(partial(verb, *args, **kwargs))

    return run


def drive(verb: Verb[T], execute: Callable[[VerbStep], list[Row]]) -> T:
    try:
        step = next(verb)
        while True:
            step = verb.send(execute(step))
    except StopIteration as end:
        answer: T = end.value
        return answer
    finally:
        verb.close()


async def drive_async(
    verb: Verb[T], execute: Callable[[VerbStep], Awaitable[list[Row]]], *, answer: list[Row] | None = None
) -> T:
    """Drive a verb from the start, or from the rows that it waits for."""
    try:
        step = next(verb) if answer is None else verb.send(answer)
        while True:
            step = verb.send(await execute(step))
    except StopIteration as end:
        answered: T = end.value
        return answered
    finally:
        verb.close()


# How many connections to PostgreSQL a process may have, and how it uses them.


class PoolLimits(Struct, frozen=True, kw_only=True):
    min_size: int = 1
    max_size: int = 10
    acquire_seconds: float = 5.0
    statement_cache: bool = True  # off behind PgBouncer in transaction mode
    # Of every transaction that writes, set on the server: a node that stands still holds no lock for longer.
    idle_transaction_seconds: float = 3.0  # between two statements
    lock_seconds: float = 4.0  # waiting for one lock
    statement_seconds: float = 10.0  # for one statement, where it does not say more itself
