"""Features of PostgreSQL only: a connection pool, a standby that takes over, PgBouncer."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import func, select, true
from sqlalchemy.dialects.postgresql import insert

from gatehouse.kernel.errors import Unavailable
from gatehouse.storage.database import open_storage
from gatehouse.storage.listeners import MISSED_PAYLOAD
from gatehouse.storage.migrations import HEAD, run_in_child
from gatehouse.storage.runner import PoolLimits
from gatehouse.storage.statements import Notification, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.every_table import metadata
from gatehouse.storage.tables.installation import installation
from gatehouse.storage.tables.oauth import grants
from tests.conformance import test_accounts
from tests.support.builders import a_record, a_user
from tests.support.clock import run_ready_tasks
from tests.support.oauth import a_grant
from tests.support.pgbouncer import pgbouncer_before
from tests.support.postgres import ADMINISTRATOR, PostgresCluster, database_name
from tests.support.postgres_replicas import Standby
from tests.support.postgres_session import LOCK_TIMEOUT, postgres_session, wait_for_lock_waiters
from tests.support.processes import LOOPBACK
from tests.support.service import RunningService, running_service
from tests.support.tcp_proxy import half_open_proxy

LOCK: Final = 7
SHORT_LIMITS: Final = PoolLimits(statement_seconds=0.5)  # a short timeout for a server that does not respond
LIMITS: Final = ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")
SHOW_LIMITS = Statement(lambda: select(*(func.current_setting(name).label(name) for name in LIMITS)))
OURS: Final = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'gatehouse'"
WAIT_FOR_LOCK = Statement(lambda: select(func.pg_advisory_xact_lock(LOCK).label("locked")))
COUNT_TWO = Statement(lambda: select(func.count().label("number")).select_from(installation.join(users, true())))
INSERT_FACT = Statement(lambda: insert(installation).on_conflict_do_nothing().returning(installation.c.name))
PROMISES: Final = {name: promise for name, promise in vars(test_accounts).items() if name.startswith("test_")}


def wait_for_lock() -> Verb[None]:
    yield WAIT_FOR_LOCK()


def write_and_wait() -> Verb[None]:
    yield INSERT_FACT(name="cut short", value="1")
    yield WAIT_FOR_LOCK()


def wake() -> Verb[None]:
    yield Notification("things", "news")


def at_port(port: int, url: str) -> str:
    """The same database at a different port."""
    return f"postgresql://{ADMINISTRATOR}@{LOOPBACK}:{port}/{database_name(url)}"


async def retry_until_available(act: Callable[[], Awaitable[object]]) -> None:
    """Retry until it succeeds; failures must be Unavailable, which becomes a 503."""
    async with asyncio.timeout(LOCK_TIMEOUT):
        while True:
            try:
                await act()
            except Unavailable:
                continue
            return


async def guess(service: RunningService) -> int:
    return (await service.client.get("/setup", params={"token": "guess"})).status_code


# -- the pool


async def test_connection_timeout_is_unavailable_and_the_next_request_succeeds(
    migrated_postgres_url: str,
) -> None:
    limits = PoolLimits(min_size=1, max_size=1, acquire_seconds=0.2)
    async with (
        postgres_session(migrated_postgres_url) as holder,
        open_storage(migrated_postgres_url, migrate=False, limits=limits) as storage,
    ):
        await holder.execute("SELECT pg_advisory_lock($1)", LOCK)
        waiting = asyncio.create_task(storage.runner.write(wait_for_lock))
        await wait_for_lock_waiters(holder)
        async with asyncio.timeout(LOCK_TIMEOUT):
            with pytest.raises(Unavailable):
                await storage.accounts.setup_is_closed()
        await holder.execute("SELECT pg_advisory_unlock($1)", LOCK)
        await waiting
        assert not await storage.accounts.setup_is_closed()


async def test_a_process_opens_no_more_connections_than_it_may(migrated_postgres_url: str) -> None:
    limits = PoolLimits(min_size=0, max_size=3)
    async with open_storage(migrated_postgres_url, migrate=False, limits=limits) as storage:
        await asyncio.gather(*(storage.accounts.create_user(a_user(), a_record()) for _ in range(40)))
        async with postgres_session(migrated_postgres_url) as watcher:
            assert await watcher.fetchval(f"SELECT count(*) {OURS}") == 3


def note_once(name: str, *more: str, trouble: Exception | None = None) -> Verb[str]:
    """Store a fact; if it exists, change it."""
    if (yield INSERT_FACT(name=name, value="1")):
        return "at once"
    for another in more:
        yield INSERT_FACT(name=another, value="1")
    if trouble is not None:
        raise trouble
    return "after all"


def note_twice() -> Verb[None]:
    yield INSERT_FACT(name="first", value="1")
    yield INSERT_FACT(name="second", value="1")


async def test_a_first_statement_that_does_everything_is_committed_by_itself(migrated_postgres_url: str) -> None:
    async with open_storage(migrated_postgres_url, migrate=False) as storage:

        async def act(*more: str, trouble: Exception | None = None) -> str:
            verb = partial(note_once, "first", *more, trouble=trouble)
            return await storage.runner.write(verb, single_statement=verb)

        assert await act() == "at once"
        assert await storage.installation.value("first") == "1"
        with pytest.raises(ValueError, match="second thoughts"):
            await act("a", "b", trouble=ValueError("second thoughts"))
        assert await storage.installation.value("a") is None
        assert await act("a", "b") == "after all"
        assert await storage.installation.value("b") == "1"


async def test_a_verb_that_goes_on_after_such_a_statement_is_a_mistake_of_ours(migrated_postgres_url: str) -> None:
    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        with pytest.raises(RuntimeError, match="continued"):
            await storage.runner.write(note_twice, single_statement=note_twice)


async def test_a_connection_that_comes_back_brings_no_transaction_along(migrated_postgres_url: str) -> None:
    """A returned connection is not reset, but an interrupted transaction is rolled back."""
    async with (
        postgres_session(migrated_postgres_url) as holder,
        open_storage(migrated_postgres_url, migrate=False, limits=PoolLimits(max_size=1)) as storage,
    ):
        await holder.execute("SELECT pg_advisory_lock($1)", LOCK)
        waiting = asyncio.create_task(storage.runner.write(write_and_wait))
        await wait_for_lock_waiters(holder)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert await storage.installation.value("cut short") is None
        assert await storage.runner.write(partial(note_once, "whole")) == "at once"
        await holder.execute("SELECT pg_advisory_unlock($1)", LOCK)
        assert await holder.fetchval("SELECT value FROM installation WHERE name = 'whole'") == "1"


def look_at_two() -> Verb[int]:
    (row,) = yield COUNT_TWO()
    return row.number  # type: ignore[no-any-return]


async def test_a_read_that_is_the_victim_of_a_deadlock_is_repeated(migrated_postgres_url: str) -> None:
    async with (
        postgres_session(migrated_postgres_url) as other,
        postgres_session(migrated_postgres_url) as watcher,
        open_storage(migrated_postgres_url, migrate=False) as storage,
    ):
        await other.execute("SET deadlock_timeout = '20s'")  # so that this session is not the victim
        for read in (storage.runner.read, storage.runner.snapshot_read):
            async with other.transaction():
                await other.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
                reading = asyncio.create_task(read(look_at_two))  # has locked installation, and waits for users
                await wait_for_lock_waiters(watcher)
                await other.execute("LOCK TABLE installation IN ACCESS EXCLUSIVE MODE")
            assert await reading == 0


async def test_a_connection_whose_server_has_said_good_bye_is_not_used_again(
    migrated_postgres_url: str, postgres_cluster: PostgresCluster
) -> None:
    async with (
        asyncio.timeout(LOCK_TIMEOUT),
        postgres_session(migrated_postgres_url) as administrator,
        half_open_proxy(postgres_cluster.port) as road,
        open_storage(at_port(road.port, migrated_postgres_url), migrate=False, limits=SHORT_LIMITS) as storage,
    ):
        await administrator.execute(f"SELECT pg_terminate_backend(pid) {OURS}")
        await road.server_has_closed.wait()
        await run_ready_tasks()  # asyncpg has received its last message by now
        await retry_until_available(lambda: storage.accounts.create_user(a_user(), a_record()))


async def test_a_server_that_answers_no_more_does_not_keep_us_from_closing(
    migrated_postgres_url: str, postgres_cluster: PostgresCluster
) -> None:
    async with half_open_proxy(postgres_cluster.port) as road, AsyncExitStack() as stack:
        opened = open_storage(at_port(road.port, migrated_postgres_url), migrate=False)
        storage = await stack.enter_async_context(opened)
        await storage.accounts.add_record(a_record())
        async with asyncio.timeout(PoolLimits().statement_seconds):
            await stack.aclose()


async def test_a_statement_that_takes_too_long_ends(migrated_postgres_url: str) -> None:
    def wait() -> Verb[bool]:
        return bool((yield Statement(lambda: select(func.pg_sleep(1).label("slept")))()))

    async with open_storage(migrated_postgres_url, migrate=False, limits=SHORT_LIMITS) as storage:
        with pytest.raises(Unavailable, match=r"(?i)timeout"):
            await storage.runner.write(wait)


async def test_canceled_write_ends_while_the_server_is_silent(migrated_postgres_url: str) -> None:
    async with (
        postgres_session(migrated_postgres_url) as holder,
        open_storage(migrated_postgres_url, migrate=False, limits=SHORT_LIMITS) as storage,
    ):
        await holder.execute("SELECT pg_advisory_lock($1)", LOCK)
        waiting = asyncio.create_task(storage.runner.write(wait_for_lock))
        await wait_for_lock_waiters(holder)
        with stop_processes([row["pid"] for row in await holder.fetch(f"SELECT pid {OURS}")]):
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):  # an Unavailable would lead to a retry
                await waiting


@contextmanager
def stop_processes(pids: list[int]) -> Iterator[None]:
    """Stop processes, like a host without network: the connections are open and silent."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


async def test_a_primary_that_turns_read_only_is_unavailable_for_as_long_as_it_is(
    migrated_postgres_url: str,
) -> None:
    database = database_name(migrated_postgres_url)
    async with (
        postgres_session(migrated_postgres_url) as administrator,
        open_storage(migrated_postgres_url, migrate=False) as storage,
    ):
        await administrator.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        await administrator.execute(f"SELECT pg_terminate_backend(pid) {OURS}")
        await retry_until_available(storage.accounts.setup_is_closed)  # over a new connection, which is read-only
        with pytest.raises(Unavailable, match="ReadOnly"):
            await storage.accounts.add_record(a_record())
        await administrator.execute("SET default_transaction_read_only = off")
        await administrator.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")
        await retry_until_available(lambda: storage.accounts.create_user(a_user(), a_record()))


# -- a standby


async def test_a_standby_that_takes_over_is_found_without_a_restart(tmp_path: Path) -> None:
    before, after = a_user(), a_user()
    with PostgresCluster() as primary, Standby(primary) as standby:
        await standby.make_synchronous()
        database = database_name(await primary.create_database())
        hosts = f"{LOOPBACK}:{standby.port},{LOOPBACK}:{primary.port}"  # the standby first: it must be skipped
        url = f"postgresql://{ADMINISTRATOR}@{hosts}/{database}?target_session_attrs=read-write"
        async with running_service(url, tmp_path) as service:
            accounts = service.services.storage.accounts
            await accounts.create_user(before, a_record())
            await asyncio.to_thread(primary.stop, "immediate")
            assert await guess(service) == 503
            await standby.promote()
            await retry_until_available(lambda: accounts.create_user(after, a_record()))
            assert await guess(service) == 403
            assert {user.user_id for user in await accounts.all_users()} == {before.user_id, after.user_id}


# -- PgBouncer in transaction mode, as docs/operations/postgresql.md sets it up


@pytest.fixture(scope="module")
def pgbouncer(postgres_cluster: PostgresCluster) -> Iterator[int]:
    with pgbouncer_before(postgres_cluster) as port:
        yield port


@pytest.fixture
def pooled_empty_url(pgbouncer: int, postgres_url: str) -> str:
    return at_port(pgbouncer, postgres_url)


@pytest.fixture
def pooled_url(pgbouncer: int, migrated_postgres_url: str) -> str:
    return at_port(pgbouncer, migrated_postgres_url)


async def test_a_database_is_migrated_through_pgbouncer_by_one_of_many(pooled_empty_url: str) -> None:
    await asyncio.gather(*(run_in_child(pooled_empty_url) for _ in range(2)))
    await run_in_child(pooled_empty_url)
    async with open_storage(pooled_empty_url, migrate=False, limits=PoolLimits(statement_cache=False)) as storage:
        assert await storage.runner.revision() == HEAD


@pytest.mark.parametrize("promise", PROMISES)
async def test_accounts_keep_their_promises_through_pgbouncer(
    promise: str, pooled_url: str, migrated_postgres_url: str
) -> None:
    limits = PoolLimits(statement_cache=False)
    async with open_storage(pooled_url, migrate=False, limits=limits, listen_url=migrated_postgres_url) as storage:
        await PROMISES[promise](storage)


async def test_the_service_is_ready_behind_pgbouncer_and_hears_notices_past_it(
    pooled_url: str, migrated_postgres_url: str, tmp_path: Path
) -> None:
    environment = {
        "GATEHOUSE__DATABASE__LISTEN_URL": migrated_postgres_url,
        "GATEHOUSE__DATABASE__STATEMENT_CACHE": "false",
    }
    notifications: asyncio.Queue[str] = asyncio.Queue()
    async with running_service(pooled_url, tmp_path, environment=environment) as service:
        assert (await service.client.get("/healthz")).status_code == 200
        assert await guess(service) == 403
        service.services.storage.runner.listen("things", notifications.put_nowait)
        await service.services.storage.runner.write(wake)
        async with asyncio.timeout(LOCK_TIMEOUT):
            assert await notifications.get() in ("news", MISSED_PAYLOAD)


# -- limits of a transaction --------------------------------------------------------------------------


def limits_in_force() -> Verb[tuple[str, ...]]:
    return tuple((yield SHOW_LIMITS())[0])


async def test_a_transaction_that_writes_has_limits_and_leaves_none_behind(migrated_postgres_url: str) -> None:
    limits = PoolLimits(min_size=1, max_size=1, idle_transaction_seconds=7, lock_seconds=8, statement_seconds=9)
    async with open_storage(migrated_postgres_url, migrate=False, limits=limits) as storage:
        assert await storage.runner.write(limits_in_force) == ("7s", "8s", "9s")
        assert await storage.runner.read(limits_in_force) == ("0", "0", "0")
        assert await storage.runner.snapshot_read(limits_in_force) == ("10min", "0", "0")
        with pytest.raises(LookupError):
            await storage.runner.write(failing_verb)
        assert await storage.runner.read(limits_in_force) == ("0", "0", "0")


def failing_verb() -> Verb[None]:
    yield SHOW_LIMITS()
    raise LookupError


async def test_a_lock_that_is_not_given_in_time_makes_the_write_unavailable_and_undoes_it(
    migrated_postgres_url: str,
) -> None:
    def write_and_wait() -> Verb[None]:
        yield INSERT_FACT(name="half", value="done")
        yield WAIT_FOR_LOCK()

    async with (
        postgres_session(migrated_postgres_url) as holder,
        open_storage(migrated_postgres_url, migrate=False, limits=PoolLimits(lock_seconds=0.2)) as storage,
    ):
        await holder.execute("SELECT pg_advisory_lock($1)", LOCK)
        with pytest.raises(Unavailable, match="lock timeout"):
            await storage.runner.write(write_and_wait)
        assert await storage.installation.value("half") is None


async def insert_the_same(url: str) -> None:
    """Wait until no other transaction has the row, and store nothing."""
    async with postgres_session(url) as session:
        transaction = session.transaction()
        await transaction.start()
        await session.execute("INSERT INTO installation (name, value) VALUES ('half', 'mine')")
        await transaction.rollback()


async def test_a_process_that_stands_still_between_two_statements_loses_its_transaction(
    migrated_postgres_url: str,
) -> None:
    limits = PoolLimits(idle_transaction_seconds=0.2)
    async with (
        postgres_session(migrated_postgres_url) as watcher,
        open_storage(migrated_postgres_url, migrate=False, limits=limits) as storage,
    ):

        def write_and_block() -> Verb[None]:
            yield INSERT_FACT(name="half", value="done")
            # The loop is blocked too, like that of a stopped process, until the server has rolled back.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, insert_the_same(migrated_postgres_url)).result()
            yield INSERT_FACT(name="other half", value="done")

        with pytest.raises(Unavailable):
            await storage.runner.write(write_and_block)
        assert await watcher.fetch("SELECT name FROM installation WHERE name LIKE '%half'") == []
        await storage.installation.set_value("later", "works")


async def test_tables_have_the_room_for_updates_that_they_say(migrated_postgres_url: str) -> None:
    async with postgres_session(migrated_postgres_url) as session:
        rows = await session.fetch(
            "SELECT relname, reloptions FROM pg_class WHERE relkind = 'r' AND reloptions IS NOT NULL"
        )
    said = {
        name: [f"fillfactor={options['fillfactor']}"]
        for name, table in metadata.tables.items()
        if (options := table.dialect_options["postgresql"]["with"])
    }
    assert {row["relname"]: row["reloptions"] for row in rows} == said


async def test_codes_are_redeemed_and_tokens_rotated_without_writing_an_index(migrated_postgres_url: str) -> None:
    columns = ", ".join(column.name for column in grants.c if column.name not in ("grant_id", "code"))
    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        user = a_user()
        await storage.accounts.create_user(user, a_record())
        assert await storage.grants.create_grant(a_grant(user_id=user.user_id, rev=user.rev), a_record())
    async with postgres_session(migrated_postgres_url) as session:
        copy = f"SELECT 'g' || i, CAST('c' || i AS bytea), {columns} FROM grants, generate_series(1, 300) i"  # noqa: S608
        await session.execute(f"INSERT INTO grants (grant_id, code, {columns}) {copy}")
        await session.execute("BEGIN")
        # A few of each page: earlier versions are removed from it before it is full.
        for statement in (
            "UPDATE grants SET code_taken_at = 5, generation = 1, refreshed_at = 5, attempt = 'a' WHERE {}",
            "UPDATE grants SET generation = 2, refreshed_at = 6, refresh_kid = 'k', attempt = 'b' WHERE {}",
        ):
            await session.execute(statement.format("grant_id LIKE '%7'"))
        counts = await session.fetchrow(
            "SELECT pg_stat_get_xact_tuples_updated(oid), pg_stat_get_xact_tuples_hot_updated(oid)"
            " FROM pg_class WHERE relname = 'grants'"
        )
        await session.execute("ROLLBACK")
    assert tuple(counts) == (60, 60)
