"""How the cost of a request grows with the projects that connect its application (goal P14).

Each project has a group that lists one person and takes others by their tag, and grants it a role. So a person
belongs to one group of one project, however many there are. Timed are storage and evaluation, with one caller.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from statistics import median
from time import perf_counter
from typing import Final

import asyncpg
import uvloop
from bench.figures import Figure
from bench.growth import curve, expect
from bench.permissions import RULES
from msgspec import Struct
from tests.support.builders import NOW
from tests.support.permission_builders import (
    a_person,
    a_role,
    create_application,
    holdings_with,
    install_central,
    set_fields,
)

from gatehouse.kernel.clock import SystemClock
from gatehouse.permissions.evaluation.effective import EffectivePermissions
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, Shape
from gatehouse.permissions.model.rules import ROOT, Rule, RuleSection, Scope
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.sqlite.connection import connect
from gatehouse.storage.sqlite.runner import sqlite_path

PROJECT_SIZES: Final = (10, 100, 1_000, 10_000)
PEOPLE: Final = 10
ROUNDS: Final = 5
CASES: Final = 50
RULE: Final = Rule(RuleSection.PRIVATE, "area.rule7")
NUMBERS: Final = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last}) "
FILL: Final = (
    (
        "INSERT INTO projects (project_id, title, title_key, description, tags, allowed_domains, allow, disallow,"
        " removed, author, created_at, version)"
        " SELECT 'p' || i, i, i, '', '[]', '[]', '[]', '[]', false, 'a', 0, 1 FROM n"
    ),
    "INSERT INTO project_names (name, project_id, position) SELECT 'p' || i, 'p' || i, 0 FROM n",
    (
        "INSERT INTO groups (group_id, project_id, title, title_key, description, tags, conditions, created_at,"
        " version) SELECT 'g' || i, 'p' || i, 'Team', 'team', '', '[]',"
        """ '[{{"title": "Team", "condition": {{"tag": "team' || i || '"}}}}]', 0, 1 FROM n"""
    ),
    "INSERT INTO group_members (group_id, user_id, position) SELECT 'g' || i, i, 1 FROM n WHERE i < {people}",
    (
        "INSERT INTO project_services (project_id, application_id, position, group_id, roles, action)"
        """ SELECT 'p' || i, {application}, 1, 'g' || i, '["reader"]', 'grant' FROM n"""
    ),
    (
        "INSERT INTO grant_keys (application_id, index_key, project_id)"
        " SELECT {application}, '{application}:group:g' || i, 'p' || i FROM n"
    ),
    (
        "INSERT INTO grant_keys (application_id, index_key, project_id)"
        " SELECT {application}, '{application}:tag:team' || i, 'p' || i FROM n"
    ),
)


class ConnectedDatabase(Struct, frozen=True, kw_only=True):
    storage: Storage
    application_id: int
    loader: PermissionLoader

    async def effective(self, user_id: str) -> EffectivePermissions:
        facts = await self.loader.load_facts(user_id, (self.application_id,))
        if facts is None:
            raise LookupError(user_id)
        return await self.loader.evaluate(await self.loader.load_input(facts), self.application_id, None)


Operation = Callable[[ConnectedDatabase, int], Awaitable[object]]


async def check(database: ConnectedDatabase, case: int) -> None:
    number = case % PEOPLE
    expect((await database.effective(str(number))).allows(Scope(f"p{number}"), RULE))


async def list_permissions(database: ConnectedDatabase, case: int) -> None:
    facts = await database.loader.load_facts(str(case % PEOPLE), (database.application_id,))
    expect(facts)
    assert facts is not None  # noqa: S101 - narrows the type
    loaded = await database.loader.load_input(facts)
    held = await database.loader.evaluate(loaded, database.application_id, None)
    expect(len(await database.loader.render_list(loaded, held, Shape.LIST, DEFAULT_OPTIONS)) >= RULES)


async def save_record(database: ConnectedDatabase, case: int) -> None:
    held = {ROOT: holdings_with("reader")} if case // PEOPLE % 2 else {}
    await database.storage.user_records.edit_record(
        database.application_id, str(case % PEOPLE), set_fields(scopes=held), NOW
    )


async def check_after_change(database: ConnectedDatabase, case: int) -> None:
    """A check, after a change of a project that has nothing to do with the person."""
    await database.storage.groups.edit_group("g9", set_fields(description=str(case)))
    await check(database, case % (PEOPLE - 1))


OPERATIONS: Final[Mapping[str, Operation]] = {
    "check": check,
    "list": list_permissions,
    "record saved": save_record,
    "project changed, then a check": check_after_change,
}


def project_growth(
    urls: Sequence[str], kind: str, empty: float, sizes: Sequence[int] = PROJECT_SIZES
) -> list[Figure]:
    """Needs one empty database for each size; `empty` is the cost of an empty handler in microseconds."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(urls, kind, empty, sizes))


async def measure(urls: Sequence[str], kind: str, empty: float, sizes: Sequence[int]) -> list[Figure]:
    async with AsyncExitStack() as stack:
        databases = [await connected_database(stack, *one) for one in zip(urls, sizes, strict=True)]
        for database in databases:
            await one_round(database)
        rounds = [[await one_round(database) for database in databases] for _ in range(ROUNDS)]
    return [
        figure
        for name in OPERATIONS
        for figure in curve(
            f"{name}, {kind}", empty, sizes, [[one[name] for one in row] for row in rounds], unit="projects"
        )
    ]


async def connected_database(stack: AsyncExitStack, url: str, projects: int) -> ConnectedDatabase:
    async with open_storage(url, migrate=True) as empty:  # closed before the database is filled
        await install_central(empty)
        rules = {f"rule{n}": {"value": True} for n in range(RULES)}
        role = a_role("reader", meta={"private_data": {"area": rules}})
        application = await create_application(empty, role, service_meta={"name": "Shop"})
        for number in range(PEOPLE):
            await a_person(empty, str(number))
    values = {"last": projects - 1, "people": PEOPLE, "application": application.application_id}
    await execute(url, [NUMBERS.format(**values) + one.format(**values) for one in FILL] + ["ANALYZE"])
    storage = await stack.enter_async_context(open_storage(url, migrate=False))
    return ConnectedDatabase(
        storage=storage,
        application_id=application.application_id,
        loader=PermissionLoader(store=storage.permissions, clock=SystemClock()),
    )


async def execute(url: str, statements: Sequence[str]) -> None:
    if url.startswith("sqlite"):
        connection = connect(sqlite_path(url))
        for one in statements:
            connection.execute(one)
        connection.close()
        return
    session = await asyncpg.connect(url)
    for one in statements:
        await session.execute(one)
    await session.close()


async def one_round(database: ConnectedDatabase) -> dict[str, float]:
    """Microseconds of each operation."""
    return {name: await time_each(database, operation) for name, operation in OPERATIONS.items()}


async def time_each(database: ConnectedDatabase, operation: Operation) -> float:
    times = []
    for case in range(CASES):
        begin = perf_counter()
        await operation(database, case)
        times.append(perf_counter() - begin)
    return median(times) * 1e6
