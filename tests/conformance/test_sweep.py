"""The sweep removes everything that has ended, in any amount."""

from sqlalchemy import insert

from gatehouse.storage.database import Storage
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.sweep import BATCH_ROWS
from gatehouse.storage.tables.accounts import login_tokens
from tests.support.builders import NOW

INSERT = Statement(lambda: insert(login_tokens))


def tokens(number: int, ends_at: int) -> Verb[None]:
    yield INSERT.bulk(
        [
            {"digest": b"%d-%d" % (ends_at, n), "user_id": "1", "rev": 0, "application_id": 0, "ends_at": ends_at}
            for n in range(number)
        ]
    )


def count_login_tokens() -> Verb[int]:
    return len((yield Statement(login_tokens.select)()))


async def test_more_than_one_transaction_takes_is_removed_in_several(storage: Storage) -> None:
    await storage.runner.write(lambda: tokens(2 * BATCH_ROWS + 1, NOW))
    await storage.runner.write(lambda: tokens(3, NOW + 1))
    await storage.sweep(NOW)
    assert await storage.runner.read(count_login_tokens) == 3
