"""How lookups grow with the rows of tables that people do not fill, and sealing with its backlog (goal P14).

Clients with their origins, protected sites, bans of devices and identities: one real row is multiplied by the
database. Rounds alternate between the sizes. A backlog of audit records is sealed for a few seconds.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from statistics import median
from time import perf_counter
from typing import Final

import uvloop
from bench.figures import Figure
from bench.fill_database import analyze
from bench.growth import curve, expect
from msgspec import Struct
from sqlalchemy import Table, insert, text
from tests.support.builders import NOW, a_client, a_record, a_user, an_identity
from tests.support.sealing import BOX, sealer

from gatehouse.audit.head import ChainHead
from gatehouse.audit.model import HeadSwap
from gatehouse.storage import audit
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.permissions.applications import INSERT_SITE
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import ban_digests, bans, identities
from gatehouse.storage.tables.oauth import client_origins, clients
from gatehouse.storage.tables.permissions import protected_sites

TABLE_SIZES: Final = (10, 1_000, 100_000)
BACKLOG_SIZES: Final = (10_000, 100_000, 1_000_000)
ROUNDS: Final = 5
CASES: Final = 100
SEAL_SECONDS: Final = 5.0
RECORDS_AT_ONCE: Final = 10_000
DEVICE: Final = "device"  # of ban_digests
ISSUER: Final = "https://provider.example"
NUMBERS: Final = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last})"

Lookup = Callable[[Storage, int], Awaitable[object]]


class MultipliedTable(Struct, frozen=True):
    """A table with the columns that differ, as SQL of the number `i`; the others are those of a row that is there."""

    table: Table
    differing: Mapping[str, str]

    def fill(self, size: int) -> str:
        names = ", ".join(column.name for column in self.table.c)
        values = ", ".join(self.differing.get(column.name, f"one.{column.name}") for column in self.table.c)
        source = f"(SELECT * FROM {self.table.name} LIMIT 1) AS one, n"  # noqa: S608 - names of tables
        insert = f"INSERT INTO {self.table.name} ({names}) SELECT {values} FROM {source}"  # noqa: S608
        return f"{NUMBERS.format(last=size - 1)} {insert}"


TABLES: Final = (
    MultipliedTable(clients, {"client_id": "'c' || i"}),
    MultipliedTable(client_origins, {"client_id": "'c' || i", "origin": "'https://' || i || '.example'"}),
    MultipliedTable(protected_sites, {"origin": "'https://' || i || '.example'"}),
    MultipliedTable(bans, {"ban_id": "'b' || i", "user_id": "'u' || i"}),
    MultipliedTable(ban_digests, {"ban_id": "'b' || i", "digest": "'d' || i"}),
    MultipliedTable(identities, {"subject": "'s' || i"}),
)


async def client_by_id(storage: Storage, number: int) -> None:
    expect((await storage.clients.active_client(f"c{number}")).client_id == f"c{number}")


async def origin(storage: Storage, number: int) -> None:
    expect(await storage.clients.is_registered_origin(f"https://{number}.example"))


async def site(storage: Storage, number: int) -> None:
    expect(await storage.sites.find_site(f"https://{number}.example"))


async def ban_of_device(storage: Storage, number: int) -> None:
    expect(len(await storage.bans.bans_of_device(f"d{number}", NOW)) == 1)


async def identity(storage: Storage, number: int) -> None:
    expect(await storage.profile.user_by_identity(ISSUER, f"s{number}"))


LOOKUPS: Final[Mapping[str, Lookup]] = {
    "client by ID": client_by_id,
    "origin of a client": origin,
    "protected site": site,
    "ban of a device": ban_of_device,
    "account by identity": identity,
}


def table_growth(
    urls: Sequence[str], kind: str, empty: float, sizes: Sequence[int] = TABLE_SIZES
) -> Iterator[Figure]:
    """Needs one empty database for each size; `empty` is the cost of an empty handler in microseconds."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        yield from runner.run(measure(urls, kind, empty, sizes))


async def measure(urls: Sequence[str], kind: str, empty: float, sizes: Sequence[int]) -> list[Figure]:
    async with AsyncExitStack() as stack:
        databases = []
        for url, size in zip(urls, sizes, strict=True):
            storage = await stack.enter_async_context(open_storage(url, migrate=True))
            await fill(storage, size)
            databases.append((storage, size))
        rounds = [[await one_round(*one) for one in databases] for _ in range(ROUNDS + 1)][1:]
    return [
        figure
        for name in LOOKUPS
        for figure in curve(
            f"{name}, {kind}", empty, sizes, [[one[name] for one in row] for row in rounds], unit="rows"
        )
    ]


async def fill(storage: Storage, size: int) -> None:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    await storage.profile.link_identity(an_identity(user.user_id, "first", issuer=ISSUER), a_record(), (), rev=0)
    await storage.clients.create_client(a_client("first", origins=("https://first.example",)), a_record())
    await storage.runner.write(lambda: first_rows(user.user_id))
    for one in TABLES:
        await storage.runner.write(partial(run, one.fill(size)))
    await storage.runner.write(analyze)


def first_rows(user_id: str) -> Verb[None]:
    ban = dict.fromkeys(("project_id", "reason", "public_text", "lifted_by"), "") | dict.fromkeys(
        ("application_id", "until", "lifted_at"), 0
    )
    ban |= {"ban_id": "first", "user_id": user_id, "devices": 1, "author": "admin", "created_at": NOW}
    digest = {"ban_id": "first", "kind": DEVICE, "digest": "first", "ends_at": 0}
    yield INSERT_SITE(origin="https://first.example", application_id=50_001, rule="")
    yield Statement(lambda: insert(bans).values(ban))()
    yield Statement(lambda: insert(ban_digests).values(digest))()


def run(sql: str) -> Verb[None]:
    yield Statement(lambda: text(sql.replace(":", "\\:")))()


async def one_round(storage: Storage, size: int) -> dict[str, float]:
    """Microseconds of each lookup, the median."""
    found = {}
    for name, lookup in LOOKUPS.items():
        times = []
        for case in range(CASES):
            begin = perf_counter()
            await lookup(storage, case * 7_919 % size)
            times.append(perf_counter() - begin)
        found[name] = median(times) * 1e6
    return found


def sealing_growth(urls: Sequence[str], kind: str, sizes: Sequence[int] = BACKLOG_SIZES) -> Iterator[Figure]:
    """How many records a second are sealed at the beginning of a backlog of each size."""
    rates = [asyncio.run(seal_some(url, size)) for url, size in zip(urls, sizes, strict=True)]
    title = f"growth, time to seal a record, {kind}: backlog of {sizes[-1]:,} by {sizes[0]:,}"
    yield Figure(name=title, value=rates[0] / rates[-1], unit="x", goal=1.5)
    for size, rate in zip(sizes, rates, strict=True):
        yield Figure(name=f"growth, records sealed, {kind}, backlog of {size:,}", value=rate, unit="/s")


async def seal_some(url: str, size: int) -> float:
    async with open_storage(url, migrate=True) as storage:
        await storage.audit.swap_head(HeadSwap(before=None, after=BOX.encode(ChainHead(at=NOW))))
        await storage.runner.write(partial(audit.add_audit_record, a_record()))
        await sealer(storage).seal_all()  # prepares statements
        for begin in range(0, size, RECORDS_AT_ONCE):
            records = [a_record() for _ in range(min(RECORDS_AT_ONCE, size - begin))]
            await storage.runner.write(partial(audit.add_audit_records, records))
        began = perf_counter()
        with suppress(TimeoutError):
            async with asyncio.timeout(SEAL_SECONDS):
                await sealer(storage).seal_all()
        seconds = perf_counter() - began
        return (await storage.audit.chain_end()).last_place / seconds
