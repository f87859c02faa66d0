"""Permission lists in a large installation: 1,000 roles, 500 groups by condition, and 1,000 or 100,000 people.

Each person has fifteen roles of fifty rules by assignment, five by condition, and belongs to groups by their tags.
Measured is the list of people who are not cached yet, and of the same people again: storage and evaluation together,
without HTTP; and for the former the evaluation alone, which has a goal (P12).
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean, median
from time import perf_counter
from typing import Final

import uvloop
from bench.figures import ROUNDS, Figure
from bench.fill_database import analyze
from bench.permissions import CONDITIONAL, RULES
from sqlalchemy import insert
from tests.support.builders import NOW, a_record, a_user
from tests.support.permission_builders import (
    a_group,
    a_role,
    connect_application,
    create_application,
    install_central,
    publish,
)

from gatehouse.accounts.model import search_key
from gatehouse.app.garbage_collection import GarbageCollector
from gatehouse.kernel.clock import SystemClock
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, Shape, render_shape
from gatehouse.permissions.model.condition import GroupCondition
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.permissions.model.role import Role
from gatehouse.storage.accounts.last_seen import ADD_NEVER_SEEN
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import user_ids, user_tags, users
from gatehouse.storage.tables.permissions import role_assignments

ROLES: Final = 1_000
GROUPS: Final = 500
ASSIGNED: Final = 15  # roles of each person
TAGS_PER_USER: Final = 3  # groups each person belongs to by a tag
FEW_USERS: Final = 1_000
MANY_USERS: Final = 100_000
AT_ONCE: Final = 5_000  # people inserted in one transaction
USERS_PER_ROUND: Final = 300  # people whose lists are measured in one round
COLD: Final = 1_200  # µs (goal P12)
GROWTH: Final = 1.5  # times slower at most (goal P14)
PROJECT: Final = "mind_games"


def many_users(small: str, large: str, kind: str) -> list[Figure]:
    """Needs two empty databases."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(small, large, kind))


async def measure(small: str, large: str, kind: str) -> list[Figure]:
    GarbageCollector(SystemClock()).start()  # as in the service
    async with open_storage(small, migrate=True) as with_few, open_storage(large, migrate=True) as with_many:
        few_id = await create_model(with_few, FEW_USERS)
        many_id = await create_model(with_many, MANY_USERS)
        rounds = [
            (await one_round(with_few, few_id, FEW_USERS), await one_round(with_many, many_id, MANY_USERS))
            for _ in range(ROUNDS)
        ]
    few, many = (median_of(each) for each in zip(*rounds, strict=True))
    return [
        Figure(
            name=f"evaluation of a new person, {MANY_USERS:,} people, {kind}",
            value=many.evaluated,
            unit="µs",
            goal=COLD,
        ),
        *growth_figures(f"list of a new person, {kind}", few.first, many.first),
        *growth_figures(f"list of a known person, {kind}", few.again, many.again),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Microseconds of one list."""

    first: float  # of people who are not cached
    evaluated: float  # of that, without reading from storage
    again: float  # of the same people again


def median_of(rounds: Sequence[Round]) -> Round:
    return Round(
        first=median(each.first for each in rounds),
        evaluated=median(each.evaluated for each in rounds),
        again=median(each.again for each in rounds),
    )


def growth_figures(name: str, few: float, many: float) -> Iterable[Figure]:
    yield Figure(name=f"{name}, {FEW_USERS:,} people", value=few, unit="µs")
    yield Figure(name=f"{name}, {MANY_USERS:,} people", value=many, unit="µs")
    yield Figure(name=f"{name}, {MANY_USERS:,} by {FEW_USERS:,} people", value=many / few, unit="x", goal=GROWTH)


async def one_round(storage: Storage, application_id: int, people: int) -> Round:
    reading = PermissionLoader(store=storage.permissions, clock=SystemClock())
    step = people // USERS_PER_ROUND
    await time_list(reading, application_id, name_of(1))  # reads the model
    user_ids = [name_of(number * step) for number in range(USERS_PER_ROUND)]
    first = [await time_list(reading, application_id, user_id) for user_id in user_ids]
    again = [await time_list(reading, application_id, user_id) for user_id in user_ids]
    read, evaluated = (mean(part) * 1e6 for part in zip(*first, strict=True))
    return Round(first=read + evaluated, evaluated=evaluated, again=mean(map(sum, again)) * 1e6)


async def time_list(reading: PermissionLoader, application_id: int, user_id: str) -> tuple[float, float]:
    """Seconds for reading, and for everything after it."""
    begin = perf_counter()
    facts = await reading.load_facts(user_id, (application_id,))
    if facts is None:
        raise LookupError(user_id)
    case = await reading.load_input(facts)
    read = perf_counter()
    lines = render_shape(await reading.evaluate(case, application_id, None), Shape.LIST, DEFAULT_OPTIONS, NOW)
    end = perf_counter()
    if len(lines) < (ASSIGNED + CONDITIONAL) * RULES:
        raise LookupError(f"{user_id} has only {len(lines)} rules")
    return read - begin, end - read


async def create_model(storage: Storage, people: int) -> int:
    """The application with its roles, a project with a grant of one role to each of its groups, and the people."""
    await install_central(storage)
    application = await create_application(storage, *(some_role(number) for number in range(ROLES)))
    await publish(storage)
    groups = [f"{number:024x}" for number in range(GROUPS)]
    for number, group_id in enumerate(groups):
        condition = GroupCondition(title="tagged", condition=parse_condition({"tag": tag_of(number)}))
        group = a_group(group_id, f"Group {number}", conditions=(condition,))
        await storage.groups.create_group(group, [a_record()])
    grants = [
        GroupGrant(group_id=group_id, roles=(f"role{number}",), action=GrantAction.GRANT)
        for number, group_id in enumerate(groups)
    ]
    await storage.projects.edit_project(PROJECT, connect_application(application.application_id, *grants))
    await fill(storage, application.application_id, people)
    return application.application_id


def some_role(number: int) -> Role:
    rules = {f"rule{n}": {"value": True} for n in range(RULES)}
    condition = parse_condition({"domain": "studio.example"}) if number < CONDITIONAL else None
    return a_role(f"role{number}", meta={"private_data": {f"area{number}": rules}}, condition=condition)


async def fill(storage: Storage, application_id: int, people: int) -> None:
    for start in range(0, people, AT_ONCE):
        chunk = range(start, min(start + AT_ONCE, people))
        await storage.runner.write(partial(insert_people, application_id, chunk))
    await storage.runner.write(analyze)


def insert_people(application_id: int, numbers: range) -> Verb[None]:
    names = [name_of(number) for number in numbers]
    yield Statement(lambda: insert(user_ids)).bulk([{"user_id": name} for name in names])
    yield Statement(lambda: insert(users)).bulk([a_row(name) for name in names])
    yield ADD_NEVER_SEEN.bulk([{"user_id": name} for name in names])
    yield Statement(lambda: insert(user_tags)).bulk(
        [{"user_id": name_of(number), "tag": tag_of(number + n)} for number in numbers for n in range(TAGS_PER_USER)]
    )
    yield Statement(lambda: insert(role_assignments)).bulk(
        [an_assignment(application_id, number, n) for number in numbers for n in range(ASSIGNED)]
    )


def a_row(name: str) -> dict[str, object]:
    login = f"{name}@studio.example"
    person = a_user(user_id=name, login=login, email_verified=True)
    keys: dict[str, object] = {
        "login_key": login,
        "nick_key": search_key(person.nick),
        "name_key": search_key(person.name),
    }
    columns = {column.name for column in users.c} - keys.keys()
    return {**keys, **{column: getattr(person, column) for column in columns}}


def an_assignment(application_id: int, number: int, place: int) -> dict[str, object]:
    role = CONDITIONAL + (number * 7 + place * 61) % (ROLES - CONDITIONAL)
    return {
        "application_id": application_id,
        "user_id": name_of(number),
        "project_id": "",
        "resource_kind": "",
        "resource_id": "",
        "role_key": f"role{role}",
        "position": place,
        "expired": 0,
        "ttl": 0,
    }


def name_of(number: int) -> str:
    return str(2_000_000_000 + number)


def tag_of(number: int) -> str:
    return f"team{number % GROUPS}"
