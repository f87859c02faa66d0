"""What one sign-in writes to the write-ahead log of PostgreSQL (goal P20).

Each sign-in is that of another person, who was last seen some minutes ago: authorize with their session, then the
code for tokens. Counted until everything is sealed and everyone's last-seen time is written, without what the service
writes by itself in the same time. Full pages after a checkpoint are counted apart: how many there are depends on the
time between two checkpoints.
"""

import asyncio
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx2
from bench.figures import Figure
from bench.server import CONNECTIONS, Program
from bench.single_sign_on import CODE, REDIRECT, Contender, gatehouse
from tests.support.builders import a_user

from gatehouse.accounts.model import SessionStrength, SignInMethod
from gatehouse.accounts.session_model import Session
from gatehouse.kernel.clock import SystemClock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_record_id, new_secret
from gatehouse.storage.accounts.sessions import insert_session
from gatehouse.storage.accounts.users import insert_user
from gatehouse.storage.database import open_storage
from gatehouse.storage.statements import Verb

SIGN_INS: Final = 500
AWAY_SECONDS: Final = 300  # since each person was last seen
DAY: Final = 86_400
GOAL: Final = 2.4  # KB
COMMIT: Final = "Transaction COMMIT"
POLL_SECONDS: Final = 0.2
SETTLE_SECONDS: Final = 60.0
SESSION: Final = re.compile(r"gh_session=[^;]+")
POSITION: Final = "SELECT pg_current_wal_insert_lsn()"
SETTLED: Final = (
    "SELECT NOT EXISTS (SELECT FROM audit_events WHERE place IS NULL)"
    " AND NOT EXISTS (SELECT FROM last_seen WHERE user_id = ANY($1::text[]) AND seen_at < $2)"
)
SUMS: Final = """
SELECT resource_manager || ' ' || record_type AS kind, coalesce(c.relname, '') AS relation, count(*) AS records,
    sum(record_length - fpi_length) AS bytes, sum(fpi_length) AS pages
FROM pg_get_wal_records_info($1::pg_lsn, $2::pg_lsn)
LEFT JOIN pg_class AS c ON pg_relation_filenode(c.oid) = substring(block_ref FROM 'rel \\d+/\\d+/(\\d+)')::bigint
    AND c.relkind IN ('r', 'i')
GROUP BY 1, 2 ORDER BY bytes DESC
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """WAL between two positions."""

    total: int  # bytes, with full pages
    pages: int
    by_kind: dict[str, tuple[int, int]]  # records and bytes of each kind and relation

    @property
    def own(self) -> int:
        return self.total - self.pages


def wal(program: Program, scratch: Path, url: str) -> Iterator[Figure]:
    """`url` is that of an empty database."""
    with gatehouse(program, scratch / "wal", url, "PostgreSQL") as contenders:
        contender = contenders[0].sign_in()
        busy, idle = asyncio.run(count(url, contender))
    for kind, (records, size) in sorted(busy.by_kind.items(), key=lambda item: -item[1][1]):
        idle_records, idle_size = idle.by_kind.get(kind, (0, 0))
        if size - idle_size > SIGN_INS:
            name = f"WAL of one sign-in, {kind}, {(records - idle_records) / SIGN_INS:.2f} records"
            yield Figure(name=name, value=(size - idle_size) / SIGN_INS, unit="B")
    own = (busy.own - idle.own) / SIGN_INS / 1_000
    yield Figure(name="WAL of one sign-in", value=own, unit="KB", goal=GOAL)
    commits = busy.by_kind[COMMIT][0] - idle.by_kind.get(COMMIT, (0, 0))[0]
    yield Figure(name="commits of one sign-in", value=commits / SIGN_INS, unit="")
    yield Figure(name="WAL of one sign-in, full pages", value=busy.pages / SIGN_INS / 1_000, unit="KB")


async def count(url: str, contender: Contender) -> tuple[Written, Written]:
    people = await sign_in_people(url)
    database = await asyncpg.connect(url)
    await database.execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
    warm_up, measured = list(people.items())[:CONNECTIONS], list(people.items())[CONNECTIONS:]
    await sign_in_all(contender, warm_up)
    await wait_until_settled(database, [user_id for user_id, _ in warm_up])
    began = time.monotonic()
    start = await database.fetchval(POSITION)
    await sign_in_all(contender, measured)
    await wait_until_settled(database, [user_id for user_id, _ in measured])
    seconds = time.monotonic() - began
    middle = await database.fetchval(POSITION)
    await asyncio.sleep(seconds)
    end = await database.fetchval(POSITION)
    busy, idle = await written(database, start, middle), await written(database, middle, end)
    await database.close()
    return busy, idle


async def sign_in_people(url: str) -> dict[str, str]:
    """Create accounts with a session each; return the secrets of the sessions by user ID."""
    secrets = {a_user().user_id: new_secret() for _ in range(SIGN_INS + CONNECTIONS)}
    async with open_storage(url, migrate=False) as storage:
        await storage.runner.write(partial(insert_people, secrets))
    return secrets


def insert_people(secrets: Mapping[str, str]) -> Verb[None]:
    seen_at = SystemClock().now() - AWAY_SECONDS
    for user_id, secret in secrets.items():
        yield from insert_user(a_user(user_id=user_id, login=f"{user_id}@studio.example", email_verified=True))
        session = Session(
            digest=sha256(secret),
            session_id=new_record_id(seen_at),
            user_id=user_id,
            rev=0,
            auth=SignInMethod.LOGIN,
            second_factor="",
            strength=SessionStrength.FULL,
            created_at=seen_at,
            proved_at=seen_at,
            seen_at=seen_at,
            idle_ends_at=seen_at + 3 * DAY,
            ends_at=seen_at + 30 * DAY,
            address="192.0.2.7",
            agent="Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            proved=(),
        )
        yield from insert_session(session)


async def sign_in_all(contender: Contender, people: Sequence[tuple[str, str]]) -> None:
    left = iter(people)
    async with httpx2.AsyncClient(timeout=60.0) as client:
        await asyncio.gather(*(sign_in_each(client, contender, left) for _ in range(CONNECTIONS)))


async def sign_in_each(client: httpx2.AsyncClient, contender: Contender, people: Iterator[tuple[str, str]]) -> None:
    for _, secret in people:
        cookie = SESSION.sub(f"gh_session={secret}", contender.cookie)
        response = await client.get(contender.authorize_url(), headers={"Cookie": cookie})
        found = CODE.search(response.headers["location"])
        assert found is not None  # noqa: S101 - the person is signed in
        fields = {"grant_type": "authorization_code", "code": found[1], "redirect_uri": REDIRECT}
        headers = {"Authorization": f"Basic {contender.basic}"}
        response = await client.post(contender.endpoints["token_endpoint"], data=fields, headers=headers)
        response.raise_for_status()


async def wait_until_settled(database: Any, user_ids: Sequence[str]) -> None:  # noqa: ANN401 - asyncpg has no types
    since = SystemClock().now() - AWAY_SECONDS // 2
    async with asyncio.timeout(SETTLE_SECONDS):
        while not await database.fetchval(SETTLED, user_ids, since):  # noqa: ASYNC110 - other processes write
            await asyncio.sleep(POLL_SECONDS)


async def written(database: Any, start: str, end: str) -> Written:  # noqa: ANN401 - asyncpg has no types
    total = int(await database.fetchval("SELECT $1::pg_lsn - $2::pg_lsn", end, start))
    rows = await database.fetch(SUMS, start, end)
    return Written(
        total=total,
        pages=sum(int(row["pages"]) for row in rows),
        by_kind={f"{row['kind']} {row['relation']}".strip(): (row["records"], int(row["bytes"])) for row in rows},
    )
