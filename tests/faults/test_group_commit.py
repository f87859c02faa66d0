"""SQLite's single writer: a response means the data is on disk, and failures are isolated (decisions/0004)."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import NoneType

import apsw
import pytest
from msgspec.structs import replace
from sqlalchemy import text

from gatehouse.accounts.errors import LoginTaken
from gatehouse.accounts.model import User
from gatehouse.kernel.errors import Unavailable
from gatehouse.storage.accounts.users import create_user
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.sqlite import connection
from gatehouse.storage.sqlite.connection import SYNCHRONOUS_FULL, connect
from gatehouse.storage.sqlite.runner import sqlite_path
from gatehouse.storage.statements import Notification, Statement, Verb
from tests.faults.disk import TIMEOUT, FaultyDisk
from tests.support import racers
from tests.support.builders import a_record, a_user
from tests.support.clock import run_ready_tasks
from tests.support.racers import WON, race

Act = Coroutine[object, object, None]


def pragma(name: str) -> Verb[object]:
    rows = yield Statement(lambda: text(f"PRAGMA {name}"))()
    return rows[0][0]


def write_and_wake() -> Verb[None]:
    yield from add_audit_record(a_record())
    yield Notification("things", "news")


@asynccontextmanager
async def one_group(disk: FaultyDisk, storage: Storage, *acts: Act) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Block an earlier write on the disk while the acts queue; when it ends, they share one commit."""
    with disk.hold_syncs():
        earlier = asyncio.create_task(storage.accounts.add_record(a_record()))
        await asyncio.to_thread(disk.wait_until_syncing)
        waiting = [asyncio.create_task(act) for act in acts]
        await run_ready_tasks()
        yield waiting
    await earlier


async def outcomes(waiting: list[asyncio.Task[None]]) -> list[type]:
    async with asyncio.timeout(TIMEOUT):
        return [type(answer) for answer in await asyncio.gather(*waiting, return_exceptions=True)]


async def test_every_write_returns_after_its_data_is_synced(disk: FaultyDisk, storage: Storage) -> None:
    for _ in range(3):
        disk.done.clear()
        await storage.accounts.create_user(a_user(), a_record())
        assert "write db-wal" in disk.done
        assert disk.done[-1] == "sync db-wal"


async def test_the_connection_that_writes_waits_for_the_disk(storage: Storage) -> None:
    assert await storage.runner.write(partial(pragma, "journal_mode")) == "wal"
    assert await storage.runner.write(partial(pragma, "synchronous")) == SYNCHRONOUS_FULL


async def test_no_write_returns_while_the_disk_is_syncing(disk: FaultyDisk, storage: Storage) -> None:
    with disk.hold_syncs():
        answer = asyncio.create_task(storage.accounts.add_record(a_record()))
        await asyncio.to_thread(disk.wait_until_syncing)
        await run_ready_tasks()
        assert not answer.done()
    await answer


async def test_no_listener_is_notified_while_the_disk_is_syncing(disk: FaultyDisk, storage: Storage) -> None:
    received: list[str] = []
    storage.runner.listen("things", received.append)
    with disk.hold_syncs():
        answer = asyncio.create_task(storage.runner.write(write_and_wake))
        await asyncio.to_thread(disk.wait_until_syncing)
        await run_ready_tasks()
        assert received == []
    await answer
    await run_ready_tasks()
    assert received == ["news"]


async def test_a_listener_that_raises_does_not_stop_the_writer(storage: Storage) -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context["exception"]))

    def fail(_payload: str) -> None:
        raise RuntimeError("made by a test")

    storage.runner.listen("things", fail)
    async with asyncio.timeout(TIMEOUT):
        await storage.runner.write(write_and_wake)
        await storage.accounts.add_record(a_record())
    assert [str(complaint) for complaint in complaints] == ["made by a test"]


async def test_waiting_writes_share_one_sync(disk: FaultyDisk, storage: Storage) -> None:
    acts = [storage.accounts.create_user(a_user(), a_record()) for _ in range(20)]
    async with one_group(disk, storage, *acts) as waiting:
        disk.done.clear()
    assert await outcomes(waiting) == [NoneType] * 20
    assert disk.done.count("sync db-wal") == 2  # one for the earlier write, one for the group


async def test_a_refusal_disturbs_none_of_its_neighbours(disk: FaultyDisk, storage: Storage) -> None:
    users = [a_user(login=login) for login in ("anna@studio.example", "anna@studio.example", "bob@studio.example")]
    async with one_group(
        disk, storage, *(storage.accounts.create_user(user, a_record()) for user in users)
    ) as waiting:
        pass
    assert await outcomes(waiting) == [NoneType, LoginTaken, NoneType]
    assert len(await storage.audit.unsealed_records(10)) == 3
    # The refused one leaves nothing, not even its id.
    await storage.accounts.create_user(replace(users[1], login="eve@studio.example"), a_record())


@pytest.mark.parametrize("failure", [apsw.FullError, apsw.IOError])
async def test_failed_group_commit_fails_every_write_in_the_group(
    disk: FaultyDisk, storage: Storage, failure: type[apsw.Error]
) -> None:
    logins = ("anna@studio.example", "anna@studio.example", "bob@studio.example")
    acts = [storage.accounts.create_user(a_user(login=login), a_record()) for login in logins]
    async with one_group(disk, storage, *acts) as waiting:
        disk.write_failure = failure
    assert await outcomes(waiting) == [Unavailable] * 3
    assert [record.event for record in await storage.audit.unsealed_records(10)] == [
        "user.created"
    ]  # of the earlier write
    disk.write_failure = None
    await storage.accounts.create_user(a_user(login="anna@studio.example"), a_record())


def create_inline(storage: Storage, user: User) -> Act:
    """Create it inline, as acts that run on the event loop up to their commit."""
    return storage.runner.write(partial(create_user, storage.ban_copies, user, a_record()), inline=True)


async def test_no_inline_write_returns_before_its_sync(disk: FaultyDisk, storage: Storage) -> None:
    with disk.hold_syncs():
        answer = asyncio.create_task(create_inline(storage, a_user()))
        await asyncio.to_thread(disk.wait_until_syncing)
        await run_ready_tasks()
        assert not answer.done()
    await answer
    assert disk.done[-1] == "sync db-wal"


async def test_brief_verbs_share_a_group_with_long_ones_and_a_refusal_is_no_one_elses(
    disk: FaultyDisk, storage: Storage
) -> None:
    anna, again, bob = (a_user(login=login) for login in ("anna@a.example", "anna@a.example", "bob@a.example"))
    acts = [
        create_inline(storage, anna),
        create_inline(storage, again),
        storage.accounts.create_user(bob, a_record()),
    ]
    async with one_group(disk, storage, *acts) as waiting:
        disk.done.clear()
    assert await outcomes(waiting) == [NoneType, LoginTaken, NoneType]
    assert disk.done.count("sync db-wal") == 2
    async with one_group(disk, storage, create_inline(storage, again), create_inline(storage, a_user())) as waiting:
        pass
    assert await outcomes(waiting) == [LoginTaken, NoneType]


@pytest.mark.parametrize("failure", [apsw.FullError, apsw.IOError])
async def test_failed_commit_of_inline_writes_fails_all_of_them(
    disk: FaultyDisk, storage: Storage, failure: type[apsw.Error]
) -> None:
    user = a_user()
    async with one_group(disk, storage, create_inline(storage, user), create_inline(storage, a_user())) as waiting:
        disk.write_failure = failure
    assert await outcomes(waiting) == [Unavailable] * 2
    disk.write_failure = None
    await create_inline(storage, user)


async def test_a_brief_verb_waits_for_the_command_line_without_holding_up_the_loop(
    storage: Storage, migrated_sqlite_url: str
) -> None:
    beside = connect(sqlite_path(migrated_sqlite_url))
    beside.execute("BEGIN IMMEDIATE; INSERT INTO installation VALUES ('x', 'y')")
    answer = asyncio.create_task(create_inline(storage, a_user()))
    await run_ready_tasks()
    assert not answer.done()  # the loop is not blocked
    beside.execute("COMMIT")
    async with asyncio.timeout(TIMEOUT):
        await answer
    beside.close()


async def test_closing_finishes_what_waits(migrated_sqlite_url: str) -> None:
    users = [a_user() for _ in range(3)]
    async with open_storage(migrated_sqlite_url, migrate=False) as storage:
        acts = [asyncio.create_task(create_inline(storage, user)) for user in users]
        await asyncio.wait(acts, timeout=0)  # let them begin
    assert await outcomes(acts) == [NoneType] * 3
    async with open_storage(migrated_sqlite_url, migrate=False) as storage:
        assert [await storage.accounts.user(user.user_id) for user in users] == users


async def test_a_caller_who_leaves_takes_no_one_along(disk: FaultyDisk, storage: Storage) -> None:
    users = [a_user() for _ in range(3)]
    acts = [storage.accounts.create_user(user, a_record()) for user in users]
    async with one_group(disk, storage, *acts) as waiting:
        waiting[1].cancel()
    assert await outcomes(waiting) == [NoneType, asyncio.CancelledError, NoneType]
    for user in users:  # a cancelled write that had begun is finished, with its record
        assert await storage.accounts.user(user.user_id) == user
    assert len(await storage.audit.unsealed_records(10)) == 4


async def test_a_disk_that_fails_while_nothing_is_written_does_not_end_the_writer(
    disk: FaultyDisk, storage: Storage, migrated_sqlite_url: str
) -> None:
    beside = connect(sqlite_path(migrated_sqlite_url))  # like a command: its write makes the writer check
    beside.execute("BEGIN IMMEDIATE; INSERT INTO installation VALUES ('x', 'y')")
    with disk.hold_syncs():
        committing = asyncio.create_task(asyncio.to_thread(beside.execute, "COMMIT"))
        await asyncio.to_thread(disk.wait_until_syncing)
        disk.read_failure = apsw.IOError
    assert await asyncio.to_thread(disk.read_failed.wait, TIMEOUT)
    disk.read_failure = None
    await committing
    beside.close()
    async with asyncio.timeout(TIMEOUT):
        await storage.accounts.create_user(a_user(), a_record())


async def test_r_14_fifty_writers_in_five_processes_and_a_long_reader_never_meet_a_locked_database(
    migrated_sqlite_url: str,
) -> None:
    connect(sqlite_path(migrated_sqlite_url)).close()  # switches the file to WAL mode
    reader = connect(sqlite_path(migrated_sqlite_url), read_only=True)
    reader.execute("BEGIN; SELECT count(*) FROM attempts").fetchall()
    outcomes = await asyncio.to_thread(race, racers.guess, migrated_sqlite_url, racers=5, each=10)
    reader.close()
    assert outcomes == {WON: 50}


async def test_r_14_the_log_beside_the_database_shrinks_again_once_a_long_reader_has_left(
    migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "WAL_KEPT_BYTES", 2**20)
    path = sqlite_path(migrated_sqlite_url)
    async with open_storage(migrated_sqlite_url, migrate=False) as storage:
        reader = connect(path, read_only=True)
        reader.execute("BEGIN; SELECT count(*) FROM attempts").fetchall()
        long = [log_size(path)]
        while long[-1] < 4 * 2**20:
            await asyncio.gather(*(storage.accounts.create_user(a_user(), a_record()) for _ in range(100)))
            long.append(log_size(path))
        reader.close()
        for _ in range(3):
            await storage.accounts.create_user(a_user(), a_record())
        assert log_size(path) <= 2**20


def log_size(path: str) -> int:
    return Path(f"{path}-wal").stat().st_size


async def test_a_closed_database_is_one_whole_file(migrated_sqlite_url: str, tmp_path: Path) -> None:
    user = a_user()
    async with open_storage(migrated_sqlite_url, migrate=False) as storage:
        await storage.accounts.create_user(user, a_record())
    copied = shutil.copy(sqlite_path(migrated_sqlite_url), tmp_path / "copied.db")
    async with open_storage(f"sqlite:///{copied}", migrate=False) as storage:
        assert await storage.accounts.user(user.user_id) == user


async def test_a_write_after_the_end_is_refused_and_not_left_waiting(migrated_sqlite_url: str) -> None:
    async with open_storage(migrated_sqlite_url, migrate=False) as storage:
        pass
    async with asyncio.timeout(TIMEOUT):
        with pytest.raises(Unavailable):
            await storage.accounts.add_record(a_record())
