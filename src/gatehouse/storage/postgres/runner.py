"""PostgreSQL: a pool of asyncpg connections, one round trip per statement, NOTIFY after commits for wake-ups.

Any number of processes may use the database. A multi-host URL with `target_session_attrs=read-write` survives a
failover: broken connections are dropped, and new ones find the primary.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import chain, repeat
from typing import Any, Final, TypeVar, cast

import asyncpg
import structlog
from msgspec import Struct

from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop_in_transaction
from gatehouse.kernel.errors import Conflict, Misconfigured, OutcomeUnknown, Unavailable
from gatehouse.storage.listeners import Listeners
from gatehouse.storage.postgres.batching import StatementBatcher
from gatehouse.storage.postgres.listening import NotificationListener
from gatehouse.storage.postgres.notifying import NotificationSender
from gatehouse.storage.rollback import rolls_back, write_and_roll_back
from gatehouse.storage.runner import Listener, PoolLimits, VerbFactory, drive_async
from gatehouse.storage.statements import BoundStatement, BulkStatement, Notification, Row, Verb, VerbStep

T = TypeVar("T")
log = structlog.get_logger(__name__)

OLDEST_SERVER: Final = 15
MAX_ATTEMPTS: Final = 5  # of a verb that met a deadlock or a serialization failure
CHARACTERS_PER_WEIGHT: Final = 20  # of stored text that are decoded for a unit of weight
LISTEN_SECONDS: Final = 10.0
SNAPSHOT_IDLE_SECONDS: Final = 600.0  # a backup may be written to something slow, and a snapshot blocks no write
SETTLE_SECONDS: Final = 5.0  # seconds a caller waits while an unknown outcome is resolved
SETTLE_PAUSES: Final = (0.0, 0.05, 0.2, 0.5, 1.0)  # seconds before each further run; the last value repeats
MILLISECONDS: Final = 1_000
CLOSE_SECONDS: Final = 1.0  # seconds for an unresponsive server; then connections are cut

TIMELINE: Final = (
    "SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"
)

RETRYABLE_ERRORS: Final = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
UNREACHABLE_ERRORS: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # used after the server's last message and before the end of the connection
    asyncpg.OperatorInterventionError,  # shutdown, crash recovery, cannot connect now
    asyncpg.InsufficientResourcesError,  # disk full, out of memory, too many connections
    asyncpg.IdleInTransactionSessionTimeoutError,  # this process was stopped for too long
    asyncpg.ReadOnlySQLTransactionError,  # the primary was demoted
    asyncpg.exceptions.TargetServerAttributeNotMatched,
    OSError,
    TimeoutError,
)
# After any of these a statement that was sent may or may not have been carried out.
CONNECTION_LOST_ERRORS: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,  # may follow a commit that waited for a synchronous standby
    asyncpg.CrashShutdownError,
    OSError,
    TimeoutError,
)
ACCESS_ERRORS: Final = (
    asyncpg.ObjectNotInPrerequisiteStateError,  # a database that accepts no connections
    asyncpg.InvalidCatalogNameError,  # a database that is being replaced by another
    asyncpg.InvalidAuthorizationSpecificationError,  # a role or password that was changed
)
TRANSLATED_ERRORS: Final = (asyncpg.IntegrityConstraintViolationError, *ACCESS_ERRORS, *UNREACHABLE_ERRORS)


class PostgresRunner:
    def __init__(
        self, pool: asyncpg.Pool, limits: PoolLimits, listen_url: str, promotion_guard: "PromotionGuard"
    ) -> None:
        self._pool = pool
        self._promotion_guard = promotion_guard
        self._limits = limits
        self._batcher = StatementBatcher(
            self._connection, max_workers=max(1, limits.max_size // 2), queue_timeout=limits.acquire_seconds
        )
        self._listeners = Listeners()
        self._listener = NotificationListener(self._listeners, partial(connect_to_listen, listen_url))
        self._sender = NotificationSender(self._connection)

    @classmethod
    async def open(cls, url: str, limits: PoolLimits, listen_url: str = "") -> "PostgresRunner":
        histories = PromotionGuard(url, limits)
        try:
            pool = await asyncpg.create_pool(
                url,
                init=histories.check_connection,
                min_size=limits.min_size,
                max_size=limits.max_size,
                command_timeout=limits.statement_seconds,
                statement_cache_size=1000 if limits.statement_cache else 0,
                server_settings={"application_name": "gatehouse"},
                reset=skip_reset,
            )
        except UNREACHABLE_ERRORS as error:
            raise Unavailable(f"cannot reach PostgreSQL: {error}") from error
        except asyncpg.PostgresError as error:
            raise Unavailable(f"PostgreSQL refused the connection: {error}") from error
        await refuse_old_server(pool)
        return cls(pool, limits, listen_url or url, histories)

    async def write(
        self,
        make: VerbFactory[T],
        *,
        inline: bool = False,  # noqa: ARG002 - every statement waits
        heavy: bool = False,
        single_statement: VerbFactory[T] | None = None,
        repeatable: bool = False,
    ) -> T:
        if rolls_back():  # a single statement could not be
            return await write_and_roll_back(partial(self.write, heavy=heavy), make)

        async def attempt() -> T:
            if single_statement is not None:
                return await retry_serialization_failures(lambda: self._write_single_statement(single_statement()))
            return await retry_serialization_failures(lambda: self._run_transaction(make(), heavy=heavy))

        return await retry_until_outcome_known(attempt) if repeatable else await attempt()

    async def _write_single_statement(self, verb: Verb[T]) -> T:
        """Run the first statement by itself, which commits it; run a transaction if there are more."""
        rows = await self._run_statement(next(verb), is_write=True)
        if not rows:
            return await self._run_transaction(verb, answer=rows)
        notices: list[Notification] = []
        try:
            while isinstance(step := verb.send(rows), Notification):
                notices.append(step)
                rows = []
        except StopIteration as end:
            self._sender.send(notices)
            answer: T = end.value
            return answer
        raise RuntimeError("a single-statement operation continued after its statement")

    async def _run_transaction(self, verb: Verb[T], *, heavy: bool = False, answer: list[Row] | None = None) -> T:
        async with self._connection() as connection:
            is_committing = False
            notices: list[Notification] = []
            try:
                async with transaction(connection, begin_write_statement(self._limits)):
                    ask = partial(fetch_rows, connection, notices)
                    answered = await drive_with_offloading(
                        verb, ask, weight=OFF_LOOP_WEIGHT if heavy else 0, answer=answer
                    )
                    is_committing = True
            except CONNECTION_LOST_ERRORS as error:
                if is_committing and not is_cancelled():
                    raise OutcomeUnknown(f"PostgreSQL, at COMMIT: {error!r}") from error
                raise
            finally:
                if is_committing:  # also if the outcome is unknown
                    self._sender.send(notices)
            return answered

    async def read(self, make: Callable[[], Verb[T]]) -> T:
        return await retry_serialization_failures(lambda: drive_async(make(), self._run_statement))

    async def _run_statement(self, step: VerbStep, *, is_write: bool = False) -> list[Row]:
        """Run one statement, batched with those of concurrent callers. `is_write`: it changes something."""
        if not isinstance(step, BoundStatement) or (statement := step.statement.for_batch) is None:
            async with self._connection() as connection:
                try:
                    return await execute(connection, step)
                except CONNECTION_LOST_ERRORS as error:
                    if is_write and not isinstance(error, ValueError) and not is_cancelled():
                        raise OutcomeUnknown(f"PostgreSQL: {error!r}") from error
                    raise
        try:
            return await self._batcher.execute(statement, step.parameters)
        except TRANSLATED_ERRORS as error:
            if isinstance(error, ValueError):  # asyncpg's word for a parameter of the wrong type: our mistake
                raise
            if is_write and isinstance(error, CONNECTION_LOST_ERRORS) and not is_cancelled():
                raise OutcomeUnknown(f"PostgreSQL: {error!r}") from error
            raise await self._translate_error(error) from error

    async def cached_read(self, key: Hashable, make: Callable[[], Verb[T]]) -> T:  # noqa: ARG002 - other nodes write too
        return await self.read(make)

    async def snapshot_read(self, make: Callable[[], Verb[T]]) -> T:
        return await retry_serialization_failures(lambda: self._snapshot_read(make()))

    async def _snapshot_read(self, verb: Verb[T]) -> T:
        async with self._connection() as connection, transaction(connection, BEGIN_SNAPSHOT):
            return await drive_with_offloading(verb, partial(fetch_rows, connection, []))

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        try:
            async with self._pool.acquire(timeout=self._limits.acquire_seconds) as connection:
                yield connection
        except TRANSLATED_ERRORS as error:
            if isinstance(error, ValueError):  # asyncpg's word for a parameter of the wrong type: our mistake
                raise
            raise await self._translate_error(error) from error

    async def _translate_error(self, error: Exception) -> BaseException:
        if isinstance(error, asyncpg.IntegrityConstraintViolationError):
            return Conflict(str(error))
        if is_cancelled():  # a failure during the cleanup must not hide the cancellation
            return asyncio.CancelledError()
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            await self._pool.expire_connections()
        return Unavailable(f"PostgreSQL: {error!r}")

    def listen(self, channel: str, listener: Listener) -> Callable[[], None]:
        return self._listeners.listen(channel, listener)

    async def revision(self) -> str:
        async with self._connection() as connection:
            if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
                return ""
            try:
                return str(await connection.fetchval("SELECT version_num FROM alembic_version") or "")
            except asyncpg.InsufficientPrivilegeError as error:
                raise Misconfigured(
                    f"this database role cannot read the tables ({error}): run deploy/postgresql-grants.sql as "
                    "the role that owns them"
                ) from error

    async def database_time(self) -> int | None:
        async with self._connection() as connection:
            return int(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())"))

    async def timeline(self) -> str | None:
        async with self._connection() as connection:
            return str(await connection.fetchval(TIMELINE))

    def connection_counts(self) -> Mapping[str, int]:
        return {
            "open": self._pool.get_size(),
            "idle": self._pool.get_idle_size(),
            "limit": self._pool.get_max_size(),
        }

    def on_promotion(self, known: str, handle: Callable[[str], Verb[object]]) -> None:
        self._promotion_guard.start(known, handle)

    async def close(self) -> None:
        await self._sender.close()
        await self._listener.close()
        await self._promotion_guard.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._pool.close()


class PromotionGuard:
    """Checks the timeline of every new connection.

    A promoted database is used only after the promotion was handled (faults R-06), on a connection of its own.
    """

    def __init__(self, url: str, limits: PoolLimits) -> None:
        self._url = url
        self._limits = limits
        self._known_timeline = ""
        self._handle: Callable[[str], Verb[object]] | None = None
        self._handling: asyncio.Task[None] | None = None

    def start(self, known: str, handle: Callable[[str], Verb[object]]) -> None:
        self._known_timeline, self._handle = known, handle

    async def check_connection(self, connection: Any) -> None:  # noqa: ANN401 - asyncpg has no types
        if self._handle is None:
            return
        timeline = await connection.fetchval(TIMELINE)
        if timeline in ("", self._known_timeline):  # "": a standby; no request depends on it
            return
        if self._handling is None:
            self._handling = asyncio.create_task(self._run_handler(self._handle), name="postgres-promoted")
        raise Unavailable(f"PostgreSQL was promoted to timeline {timeline}; this is being recorded")

    async def _run_handler(self, handle: Callable[[str], Verb[object]]) -> None:
        try:
            connection = await asyncpg.connect(self._url, server_settings={"application_name": "gatehouse"})
            try:
                timeline = await connection.fetchval(TIMELINE)
                # Several nodes may handle it, and wait for the first one as long as it takes.
                beginning = begin_statement(idle_in_transaction_session_timeout=self._limits.idle_transaction_seconds)
                async with transaction(connection, beginning):
                    await drive_async(handle(timeline), partial(execute, connection))
                self._known_timeline = timeline
            finally:
                await connection.close(timeout=CLOSE_SECONDS)
        except (*UNREACHABLE_ERRORS, asyncpg.PostgresError) as error:
            log.warning("storage.promotion_not_noted", reason=str(error))  # the next connection tries again
        finally:
            self._handling = None

    async def close(self) -> None:
        if self._handling is not None:
            self._handling.cancel()
            await asyncio.gather(self._handling, return_exceptions=True)


async def retry_serialization_failures(attempt: Callable[[], Awaitable[T]]) -> T:
    """Retry serialization failures and deadlocks.

    Reads can fail too: if every transaction is serializable, or in a deadlock.
    """
    for _ in range(MAX_ATTEMPTS):
        try:
            return await attempt()
        except RETRYABLE_ERRORS as error:
            again = error
    raise Unavailable(f"gave up after {MAX_ATTEMPTS} attempts: {again}")


async def retry_until_outcome_known(attempt: Callable[[], Awaitable[T]]) -> T:
    """Run a repeatable verb again while its outcome is unknown, for a bounded time.

    A second run waits for the locks of the first one if that is still running on the server.
    """
    loop = asyncio.get_running_loop()
    try:
        return await attempt()
    except OutcomeUnknown as error:
        log.warning("storage.outcome_unknown", reason=str(error))
        unknown = error
    ends_at = loop.time() + SETTLE_SECONDS
    for pause in chain(SETTLE_PAUSES, repeat(SETTLE_PAUSES[-1])):
        await asyncio.sleep(pause)
        if loop.time() >= ends_at:
            break
        try:
            return await attempt()
        except Unavailable as error:  # also for a definite error: the first run's outcome is still unknown
            log.warning("storage.outcome_still_unknown", reason=str(error))
    raise unknown


async def skip_reset(connection: object) -> None:
    """Skip asyncpg's reset of a returned connection, which costs a round trip and is not needed.

    These sessions never listen, take advisory session locks or change settings; asyncpg still rolls back an open
    transaction.
    """


def begin_statement(mode: str = "", **limits: float) -> str:
    """Begin a transaction and set limits for it alone, in one round trip.

    The limits are set for the transaction and not for the session: behind PgBouncer in transaction mode sessions are
    shared, and settings in the connection request are refused.
    """
    settings = (f"SET LOCAL {name} = {int(seconds * MILLISECONDS)}" for name, seconds in limits.items())
    return "; ".join((f"BEGIN {mode}".strip(), *settings))


def begin_write_statement(limits: PoolLimits) -> str:
    return begin_statement(
        idle_in_transaction_session_timeout=limits.idle_transaction_seconds,
        lock_timeout=limits.lock_seconds,
        statement_timeout=limits.statement_seconds,
    )


BEGIN_SNAPSHOT: Final = begin_statement(
    "ISOLATION LEVEL REPEATABLE READ READ ONLY", idle_in_transaction_session_timeout=SNAPSHOT_IDLE_SECONDS
)


@asynccontextmanager
async def transaction(connection: Any, beginning: str) -> AsyncIterator[None]:  # noqa: ANN401 - asyncpg has no types
    """Commit at the end, roll back when the body raises. asyncpg's own transaction starts with a separate BEGIN."""
    try:
        await connection.execute(beginning)
        yield
    except BaseException:
        with suppress(asyncpg.InterfaceError):  # the server ended the connection, and the pool has taken it back
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
        raise
    await connection.execute("COMMIT")


def is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class EncodedStep(Struct, frozen=True):
    """A step with its parameters encoded."""

    step: VerbStep
    values: Sequence[Any]


def encode_step(step: VerbStep) -> EncodedStep:
    if isinstance(step, Notification):
        return EncodedStep(step, [])
    compiled = step.statement.for_postgres
    if isinstance(step, BulkStatement):
        return EncodedStep(step, [compiled.driver_values(row) for row in step.rows])
    return EncodedStep(step, compiled.driver_values(step.parameters))


async def fetch_rows(
    connection: Any,  # noqa: ANN401 - asyncpg has no types
    notices: list[Notification],
    asked: EncodedStep,
) -> list[Any]:
    """Return the rows as the driver returns them; a notice is added to `notices`, for after the commit."""
    step = asked.step
    if isinstance(step, Notification):
        notices.append(step)
        return []
    sql = step.statement.for_postgres.sql
    if isinstance(step, BulkStatement):
        if asked.values:
            await connection.executemany(sql, asked.values)
        return []
    rows: list[Any] = await connection.fetch(sql, *asked.values)
    return rows


def decode_rows(asked: EncodedStep, rows: list[Any]) -> list[Row]:
    if not isinstance(asked.step, BoundStatement):
        return []
    return list(map(asked.step.statement.for_postgres.decode, rows))


async def execute(connection: Any, step: VerbStep) -> list[Row]:  # noqa: ANN401 - asyncpg has no types
    asked = encode_step(step)
    return decode_rows(asked, await fetch_rows(connection, [], asked))


async def drive_with_offloading(
    verb: Verb[T],
    ask: Callable[[EncodedStep], Awaitable[list[Any]]],
    *,
    weight: int = 0,
    answer: list[Row] | None = None,
) -> T:
    """Drive a verb like `drive_async`.

    One that has read a lot continues off the event loop, where it decodes, checks and writes.
    """
    try:
        asked, ended = await run_off_loop_in_transaction(weight, advance_verb, verb, answer)
        while asked is not None:
            rows = await ask(asked)
            weight = max(weight, decoding_weight(rows))
            asked, ended = await run_off_loop_in_transaction(weight, advance_with_rows, verb, asked, rows)
        return cast("T", ended)
    finally:
        with suppress(ValueError):  # canceled while the worker thread runs the verb, which ends there
            verb.close()


def advance_with_rows(verb: Verb[T], asked: EncodedStep, rows: list[Any]) -> tuple[EncodedStep | None, T | None]:
    return advance_verb(verb, decode_rows(asked, rows))


def advance_verb(verb: Verb[T], answer: list[Row] | None) -> tuple[EncodedStep | None, T | None]:
    """Return the verb's next step, or its result."""
    try:
        return encode_step(next(verb) if answer is None else verb.send(answer)), None
    except StopIteration as end:
        return None, end.value


def decoding_weight(rows: list[Any]) -> int:
    """Return the cost of decoding these rows, by the length of their texts."""
    length = sum(len(value) for row in rows for value in row.values() if isinstance(value, str))
    return len(rows) + length // CHARACTERS_PER_WEIGHT


async def refuse_old_server(pool: asyncpg.Pool) -> None:
    async with pool.acquire() as connection:
        major = connection.get_server_version().major
    if major < OLDEST_SERVER:
        await pool.close()
        raise Misconfigured(f"PostgreSQL {OLDEST_SERVER} or newer is required, this is {major}")


async def connect_to_listen(url: str) -> Any:  # noqa: ANN401 - asyncpg has no types
    return await asyncpg.connect(
        url,
        timeout=LISTEN_SECONDS,
        command_timeout=LISTEN_SECONDS,
        server_settings={"application_name": "gatehouse-listen"},
    )
