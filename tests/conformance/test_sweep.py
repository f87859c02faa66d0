"""The sweep removes whatever has ended, however much, and never looks at a whole table for it."""

from pathlib import Path

import apsw
from sqlalchemy import insert

from gatehouse.storage.opening import Storage, open_storage
from gatehouse.storage.sqlite import path_of
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.sweep import AT_ONCE, ended
from gatehouse.storage.tables.accounts import login_tokens
from tests.support.builders import NOW

INSERT = Statement(insert(login_tokens))


def tokens(number: int, ends_at: int) -> Verb[None]:
    yield INSERT.many(
        [
            {"digest": b"%d-%d" % (ends_at, n), "user_id": "1", "rev": 0, "application_id": 0, "ends_at": ends_at}
            for n in range(number)
        ]
    )


def kept() -> Verb[int]:
    return len((yield Statement(login_tokens.select())()))


async def test_more_than_one_transaction_takes_is_removed_in_several(storage: Storage) -> None:
    await storage.runner.act(lambda: tokens(2 * AT_ONCE + 1, NOW))
    await storage.runner.act(lambda: tokens(3, NOW + 1))
    await storage.sweep(NOW)
    assert await storage.runner.look(kept) == 3


async def test_no_statement_of_it_reads_a_large_table_from_end_to_end(tmp_path: Path) -> None:
    """SQLite tells its plan in words, and plans an empty table as a full one."""
    url = f"sqlite:///{tmp_path}/plans.db"
    async with open_storage(url, migrate=True):
        pass
    reader = apsw.Connection(path_of(url))
    for ask in ended(NOW):
        compiled = ask.statement.for_sqlite
        plan = reader.execute(f"EXPLAIN QUERY PLAN {compiled.sql}", compiled.values(ask.parameters)).fetchall()
        assert not [line[3] for line in plan if line[3].startswith("SCAN")], compiled.sql
    reader.close()
