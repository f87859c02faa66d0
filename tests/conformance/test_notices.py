"""Notifications wake listeners in every process, after their commit, and never without one."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import func, select

from gatehouse.kernel.errors import Refused, Unavailable
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.listeners import MISSED_PAYLOAD
from gatehouse.storage.postgres import listening, notifying, runner
from gatehouse.storage.statements import Notification, Statement, Verb
from tests.support.builders import a_record
from tests.support.postgres import PostgresCluster, database_name
from tests.support.postgres_session import LOCK_TIMEOUT, postgres_session, wait_for_lock_waiters
from tests.support.processes import WatchedProcess

ROOT: Final = Path(__file__).parents[2]
CHANNEL: Final = "things"
NEWS: Final = "news"
LOCK: Final = 7
WAIT_FOR_LOCK = Statement(lambda: select(func.pg_advisory_xact_lock(LOCK).label("locked")))
LISTENING: Final = "SELECT pid FROM pg_stat_activity WHERE application_name = 'gatehouse-listen' AND datname = $1"


def write_and_wake() -> Verb[None]:
    yield from add_audit_record(a_record())
    yield Notification(CHANNEL, NEWS)


def notify_and_raise() -> Verb[None]:
    yield from write_and_wake()
    raise Refused


def wake_and_wait() -> Verb[None]:
    yield Notification(CHANNEL, NEWS)
    yield WAIT_FOR_LOCK()


def wake(payload: str) -> Verb[None]:
    yield Notification(CHANNEL, payload)


class NotificationListener:
    """Records the notifications of a channel."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._received: list[str] = []
        self._changed = asyncio.Event()
        self._markers = (f"marker {number}" for number in count())
        storage.runner.listen(CHANNEL, self._hear)

    async def wait_for(self, payload: str) -> None:
        """Wait for it, and clear everything received."""
        async with asyncio.timeout(LOCK_TIMEOUT):
            while payload not in self._received:
                await self._next_notification()
        self._received.clear()

    async def received_so_far(self) -> list[str]:
        """Everything sent before now: a marker notification comes after it.

        Without MISSED_PAYLOAD: the first heartbeat of a connection may come after the first marker, and says it.
        """
        marker = next(self._markers)
        async with asyncio.timeout(LOCK_TIMEOUT):
            while marker not in self._received:
                await self._storage.runner.write(partial(wake, marker))
                await self._next_notification()  # the marker, or a loss of the connection
        received = [one for one in self._received if one != MISSED_PAYLOAD and not one.startswith("marker")]
        self._received.clear()
        return received

    def _hear(self, payload: str) -> None:
        self._received.append(payload)
        self._changed.set()

    async def _next_notification(self) -> None:
        await self._changed.wait()
        self._changed.clear()


async def another_process(verb: str, url: str) -> None:
    """Run the verb of that name in a separate process, to its end."""
    with WatchedProcess([sys.executable, "-m", "tests.conformance.test_notices", verb, url], cwd=ROOT) as process:
        assert await asyncio.to_thread(process.wait) == 0, process.output()


async def carry_out(verb: str, url: str) -> None:
    async with open_storage(url, migrate=False) as storage:
        with suppress(Refused):
            await storage.runner.write(globals()[verb])


async def test_a_listener_in_the_same_process_hears_what_was_committed_and_nothing_else(storage: Storage) -> None:
    listener = NotificationListener(storage)
    await listener.received_so_far()
    with pytest.raises(Refused):
        await storage.runner.write(notify_and_raise)
    assert await listener.received_so_far() == []
    await storage.runner.write(write_and_wake)
    assert await listener.received_so_far() == [NEWS]


async def test_a_write_that_raises_is_run_once_when_it_is_alone(storage: Storage) -> None:
    """A dry run always raises, and writes as much as what it tries."""
    runs = []

    def note_and_raise() -> Verb[None]:
        runs.append(1)
        yield from notify_and_raise()

    for _ in range(2):
        with pytest.raises(Refused):
            await storage.runner.write(note_and_raise)
    assert len(runs) == 2
    assert await storage.audit.unsealed_records(10) == []


async def test_a_listener_in_another_process_hears_what_was_committed_and_nothing_else(
    storage: Storage, migrated_url: str
) -> None:
    listener = NotificationListener(storage)
    await listener.received_so_far()
    await another_process(notify_and_raise.__name__, migrated_url)
    assert await listener.received_so_far() == []
    await another_process(write_and_wake.__name__, migrated_url)
    # SQLite only detects that its file was written.
    await listener.wait_for(MISSED_PAYLOAD if migrated_url.startswith("sqlite:") else NEWS)


async def test_no_node_is_notified_before_the_commit(migrated_postgres_url: str) -> None:
    async with (
        open_storage(migrated_postgres_url, migrate=False) as here,
        open_storage(migrated_postgres_url, migrate=False) as there,
        postgres_session(migrated_postgres_url) as holder,
    ):
        listener = NotificationListener(here)
        await listener.received_so_far()
        await holder.execute("SELECT pg_advisory_lock($1)", LOCK)
        waking = asyncio.create_task(there.runner.write(wake_and_wait))
        await wait_for_lock_waiters(holder)
        assert await listener.received_so_far() == []
        await holder.execute("SELECT pg_advisory_unlock($1)", LOCK)
        await waking
        await listener.wait_for(NEWS)


RECORD_NOTIFY: Final = """
    CREATE TABLE notified (xid bigint, payload text);
    CREATE FUNCTION public.pg_notify(channel text, payload text) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO notified VALUES (txid_current(), payload);
            PERFORM pg_catalog.pg_notify(channel, payload);
        END $$;
"""


def write_and_wake_many() -> Verb[None]:
    yield from add_audit_record(a_record())
    for number in range(50):
        yield Notification(CHANNEL, str(number % 25))


async def test_a_transaction_does_not_notify_and_its_notices_are_one_statement(migrated_postgres_url: str) -> None:
    """A commit that notifies has a lock of the whole server until it is on disk."""
    async with postgres_session(migrated_postgres_url) as session:
        await session.execute(RECORD_NOTIFY)
        await session.execute(
            f"ALTER DATABASE {database_name(migrated_postgres_url)} SET search_path = public, pg_catalog"
        )
        async with open_storage(migrated_postgres_url, migrate=False) as storage:
            listener = NotificationListener(storage)
            await listener.received_so_far()
            await session.execute("TRUNCATE notified")
            await storage.runner.write(write_and_wake_many)
            assert await listener.received_so_far() == [str(number) for number in range(25)]
        rows = await session.fetch(
            "SELECT xid, count(*) FROM notified WHERE payload ~ ('^' || $1 || ' [0-9]') GROUP BY 1", CHANNEL
        )
        assert [row["count"] for row in rows] == [25]
        (written,) = await session.fetch("SELECT xmin::text::bigint AS xid FROM audit_events")
        assert written["xid"] != rows[0]["xid"]


async def test_a_notice_waits_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "RETRY_SECONDS", 0.0)
    sent: list[str] = []
    failures = iter([Unavailable("away"), Unavailable("away")])

    class Connection:
        async def execute(self, _: str, channel: str, notices: list[str]) -> None:
            sent.extend(f"{channel}: {notice}" for notice in notices)
            if len(sent) == 2:
                sender.send([Notification(CHANNEL, NEWS)])  # of a commit after the notice was sent

    @asynccontextmanager
    async def connect() -> AsyncIterator[Connection]:
        for failure in failures:
            raise failure
        yield Connection()

    sender = notifying.NotificationSender(connect)
    sender.send([Notification(CHANNEL, NEWS)])
    sender.send([Notification(CHANNEL, NEWS), Notification(CHANNEL, "more")])
    await sender.close()
    news = f"gatehouse: {CHANNEL} {NEWS}"
    assert sent == [news, f"gatehouse: {CHANNEL} more", news]


async def test_a_listener_is_told_to_look_again_after_the_server_was_restarted(
    migrated_postgres_url: str, postgres_cluster: PostgresCluster
) -> None:
    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        listener = NotificationListener(storage)
        await listener.received_so_far()
        await asyncio.to_thread(postgres_cluster.restart)
        await listener.wait_for(MISSED_PAYLOAD)
        await listener.received_so_far()  # it may come before the connection is back, and again when it is
        await storage.runner.write(write_and_wake)
        assert await listener.received_so_far() == [NEWS]


async def test_a_server_that_vanishes_without_a_word_is_noticed(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(runner, "LISTEN_SECONDS", 0.5)
    async with (
        open_storage(migrated_postgres_url, migrate=False) as storage,
        postgres_session(migrated_postgres_url) as watcher,
    ):
        listener = NotificationListener(storage)
        await listener.received_so_far()
        deaf = await watcher.fetchval(LISTENING, database_name(migrated_postgres_url))
        os.kill(deaf, signal.SIGSTOP)  # like a host without network: the connection is open and silent
        try:
            await listener.wait_for(MISSED_PAYLOAD)
            await storage.runner.write(write_and_wake)
            assert await listener.received_so_far() == [NEWS]
        finally:
            os.kill(deaf, signal.SIGCONT)


if __name__ == "__main__":
    asyncio.run(carry_out(sys.argv[1], sys.argv[2]))
