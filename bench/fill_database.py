"""Fill a database with many people: one INSERT … SELECT for each table, executed by the database.

Row `n` follows from its number alone, so that a measurement knows every key. Secrets and names are scattered over
their whole range, like random ones. Ids begin with the time, like ours (kernel/ids.py).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import apsw
import asyncpg
from sqlalchemy import BigInteger, Boolean, LargeBinary, Table, text
from tests.support.builders import NOW

from gatehouse.storage.sqlite.runner import sqlite_path
from gatehouse.storage.statements import JsonDocument, Statement, Verb
from gatehouse.storage.tables.accounts import last_seen, login_tokens, sessions, user_ids, user_tags, users
from gatehouse.storage.tables.audit import audit_events
from gatehouse.storage.tables.gamesessions import game_sessions
from gatehouse.storage.tables.oauth import grants
from gatehouse.storage.tables.permissions import role_assignments

ANALYZE: Final = Statement(lambda: text("ANALYZE"))


def analyze() -> Verb[None]:
    """As a database does some time after it was filled."""
    yield ANALYZE()


CLIENT: Final = "web"
NODE: Final = "node"  # that registered the games
ROLES: Final = 20  # of the application; each person has one of them
SCATTER_FACTOR: Final = 2_654_435_761  # prime to 2**32, so that no two smaller numbers have the same result
SCATTER_RANGE: Final = 2**32
FIRST_USER_ID: Final = 2_000_000_000
HASH: Final = "$argon2id$v=19$m=19456,t=2,p=1$" + "A" * 22 + "$" + "A" * 43
CACHE_KIB: Final = 2**20  # only while the database is filled
# Indexes are created again after most rows are inserted, which takes a tenth of the time. The rest of the rows is
# inserted after them: a page that was filled by sorting is full, so that the next row costs a new page. In a database
# that has grown row by row most pages are not full.
LATE: Final = 5  # one of so many rows is inserted after the indexes
SQLITE_INDEXES: Final = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
)
POSTGRES_INDEXES: Final = """
SELECT CASE WHEN c.conname IS NULL THEN format('DROP INDEX %s', i.indexrelid::regclass)
    ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', i.indrelid::regclass, c.conname) END,
    CASE WHEN c.conname IS NULL THEN pg_get_indexdef(i.indexrelid)
    ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s', i.indrelid::regclass, c.conname, pg_get_constraintdef(c.oid))
    END
FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u')
WHERE i.indrelid = CAST(CAST($1 AS text) AS regclass)
"""
DAY: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlDialect:
    """SQL that differs between the two databases."""

    hexadecimal: str  # a number, with a number of digits
    blob: str
    numbers: str  # the numbers `n` from 0 to a count
    no: str


SQLITE: Final = SqlDialect(
    hexadecimal="printf('%0{1}x', {0})",
    blob="BLOB",
    numbers="(WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n + 1 < {}) SELECT n FROM s)",
    no="0",
)
POSTGRES: Final = SqlDialect(
    hexadecimal="lpad(to_hex({0}), {1}, '0')",
    blob="BYTEA",
    numbers="(SELECT generate_series(CAST(0 AS bigint), {} - 1) AS n) AS s",
    no="false",
)


def scatter(number: int) -> int:
    return number * SCATTER_FACTOR % SCATTER_RANGE


def user_of(number: int) -> str:
    return str(FIRST_USER_ID + scatter(number))


def login_of(number: int) -> str:
    return f"player{scatter(number)}@studio.example"


def key_of(number: int) -> str:
    """Thirty-two hexadecimal digits, for long ids."""
    return "".join(f"{scatter(number + salt):08x}" for salt in range(4))


def id_of(number: int) -> str:
    """The same with the time first, so that new ids sort last."""
    return f"{number:08x}{key_of(number)[8:]}"


def gsid_of(number: int) -> str:
    return f"{scatter(number):08x}-0000-4000-8000-0000{scatter(number + 1):08x}"


def digest_of(number: int) -> bytes:
    return key_of(number).encode()


class RowTemplates:
    """The columns of every row, as SQL of a database."""

    def __init__(self, dialect: SqlDialect, application_id: int) -> None:
        self._dialect = dialect
        user = f"CAST({FIRST_USER_ID} + {scatter_sql()} AS TEXT)"
        login = f"'player' || CAST({scatter_sql()} AS TEXT) || '@studio.example'"
        first, second, *more = (dialect.hexadecimal.format(scatter_sql(salt), 8) for salt in range(4))
        key = " || ".join([first, second, *more])
        identity = " || ".join([dialect.hexadecimal.format("n", 8), second, *more])
        gsid = f"{first} || '-0000-4000-8000-0000' || {second}"
        digest = f"CAST({key} AS {dialect.blob})"
        owner = {"user_id": user}
        lifetime = {"created_at": str(NOW), "ends_at": f"{NOW + 30 * DAY} + n % {DAY}"}
        self.tables: Mapping[Table, Mapping[str, str]] = {
            user_ids: owner,
            users: {
                **owner,
                "kind": "'person'",
                "login": login,
                "login_key": login,
                "nick": "'Player ' || CAST(n AS TEXT)",
                "password_hash": f"'{HASH}'",
                "lang": "'en'",
                "level": "'normal'",
                "reg_time": f"{NOW} - n",
                "version": "1",
            },
            last_seen: {**owner, "seen_at": f"{NOW} - n"},
            user_tags: {**owner, "tag": "'team' || CAST(n % 500 AS TEXT)"},
            sessions: {
                **owner,
                **lifetime,
                "digest": digest,
                "session_id": identity,
                "auth": "'login'",
                "strength": "'full'",
                **dict.fromkeys(("proved_at", "seen_at"), str(NOW)),
                "idle_ends_at": f"{NOW + 14 * DAY} + n % {DAY}",
                "address": "'192.0.2.7'",
                "agent": "'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'",
            },
            login_tokens: {**owner, "digest": digest, "ends_at": lifetime["ends_at"]},
            grants: {
                **owner,
                **lifetime,
                "grant_id": identity,
                "client_id": f"'{CLIENT}'",
                "session_id": identity,
                "scopes": """'["openid","email","profile","offline_access"]'""",
                "redirect_uri": "'https://shop.example/callback'",
                "wanted_claims": "'[]'",
                "auth": "'login'",
                **dict.fromkeys(("auth_time", "code_ends_at", "code_taken_at", "refreshed_at"), str(NOW)),
                "code": digest,
                "generation": "1",
            },
            game_sessions: {
                **lifetime,
                "gsid": gsid,
                "location": digest,
                "address": "'192.0.2.7'",
                "address_proven": "true",
                "code": "'42'",
                "options": f"CAST({key} || {key} || {key} AS {dialect.blob})",
                "state": "'pending'",
                "holder": f"'{NODE}'",
            },
            role_assignments: {
                **owner,
                "application_id": str(application_id),
                "role_key": f"'role' || CAST(n % {ROLES} AS TEXT)",
            },
            audit_events: {
                "record_id": identity,
                "at": f"{NOW} - n",
                "event": "'session.opened'",
                "actor": user,
                "subject": user,
                "request_id": dialect.hexadecimal.format(scatter_sql(), 8),
                "personal": """'{"address":"192.0.2.7","agent":"Firefox"}'""",
                **dict.fromkeys(("salt", "commitment", "mac"), digest),
                "place": "n + 1",
            },
        }

    def statement(self, table: Table, number: int, *, which: str = "true") -> str:
        values = {column.name: self._default_value(column.type) for column in table.c if not column.nullable}
        values |= self.tables[table]
        source = self._dialect.numbers.format(number)
        columns, cells = ", ".join(values), ", ".join(values.values())
        return f"INSERT INTO {table.name} ({columns}) SELECT {cells} FROM {source} WHERE {which}"  # noqa: S608 - no input

    def _default_value(self, kind: object) -> str:
        if isinstance(kind, JsonDocument):
            return "'{}'"
        if isinstance(kind, LargeBinary):
            return f"CAST('' AS {self._dialect.blob})"
        if isinstance(kind, Boolean):
            return self._dialect.no
        return "0" if isinstance(kind, BigInteger) else "''"


def scatter_sql(salt: int = 0) -> str:
    return f"((n + {salt}) * {SCATTER_FACTOR} % {SCATTER_RANGE})"


async def fill_database(url: str, application_id: int, people: int) -> None:
    """Insert people, each with a session, a token, a grant, a waiting game, a role and an audit record."""
    if url.startswith("sqlite:"):
        await asyncio.to_thread(fill_sqlite, sqlite_path(url), application_id, people)
    else:
        await fill_postgres(url, application_id, people)


def fill_sqlite(path: str, application_id: int, people: int) -> None:
    connection = apsw.Connection(path)
    connection.pragma("journal_mode", "off")
    connection.pragma("synchronous", "off")
    connection.pragma("cache_size", -CACHE_KIB)
    rows = RowTemplates(SQLITE, application_id)
    for table in rows.tables:
        indexes = connection.execute(SQLITE_INDEXES, (table.name,)).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        connection.execute(rows.statement(table, people, which=f"n % {LATE} <> 0"))
        for _, definition in indexes:
            connection.execute(str(definition))
        connection.execute(rows.statement(table, people, which=f"n % {LATE} = 0"))
    connection.execute("ANALYZE")
    connection.pragma("journal_mode", "wal")
    connection.close()


async def fill_postgres(url: str, application_id: int, people: int) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(f"SET maintenance_work_mem = '{CACHE_KIB // 2}kB'")
    rows = RowTemplates(POSTGRES, application_id)
    for table in rows.tables:
        indexes = await connection.fetch(POSTGRES_INDEXES, table.name)
        for drop, _ in indexes:
            await connection.execute(drop)
        await connection.execute(rows.statement(table, people, which=f"n % {LATE} <> 0"))
        for _, create in indexes:
            await connection.execute(create)
        await connection.execute(rows.statement(table, people, which=f"n % {LATE} = 0"))
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")
    await connection.close()
