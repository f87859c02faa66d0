"""The time of console screens in a large installation.

It has 100,000 people, 10,000 of them with roles in an application of 500 rules and 40 roles, and 100 groups by
condition.
"""

import asyncio
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import httpx2
import uvloop
from bench.figures import Figure
from bench.fill_database import analyze
from bench.many_users import AT_ONCE, MANY_USERS, PROJECT, a_row, name_of, tag_of
from sqlalchemy import insert
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import NOW, ORIGIN, a_record
from tests.support.permission_builders import a_group, a_role, create_application, publish, set_fields
from tests.support.service import running_service

from gatehouse.kernel.clock import SystemClock
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.model.condition import GroupCondition
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.schema import ApplicationSchema, Tree
from gatehouse.storage.accounts.last_seen import ADD_NEVER_SEEN
from gatehouse.storage.database import Storage
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import user_ids, user_tags, users
from gatehouse.storage.tables.permissions import role_assignments

TIMES: Final = 5
GOAL: Final = 100.0  # milliseconds
AREAS: Final = 25
RULES: Final = 20  # of an area
ROLES: Final = 40
HOLDERS: Final = 10_000
GROUPS: Final = 100
TIMEOUT: Final = 120.0  # seconds
LOGIN: Final = "ada@studio.example"


def console(url: str, data: Path, kind: str) -> list[Figure]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(url, data, kind))


def screens(application_id: int) -> dict[str, str]:
    user_id, shop = name_of(MANY_USERS // 2), f"/console/applications/{application_id}"
    return {
        "home": "/console",
        "people": "/console/people",
        "people, searched": f"/console/people?q={user_id}",
        "people, the last page": "/console/people?page=4000",
        "a person": f"/console/people/{user_id}",
        "projects": "/console/projects",
        "groups of a project": f"/console/projects/{PROJECT}/groups",
        "applications": "/console/applications",
        "an application": shop,
        "matrix": f"{shop}/matrix",
        "users by roles": f"{shop}/users",
        "roles": "/console/roles",
        "a role": f"/console/roles/{application_id}/role7",
        "check": f"/console/access/check?user_id={user_id}&application_id={application_id}&rule=area7.rule3",
        "who can": f"/console/access/who?application_id={application_id}",
        "activity": "/console/activity",
        "settings": "/console/settings",
    }


async def measure(url: str, data: Path, kind: str) -> list[Figure]:
    settings = {"GATEHOUSE__RATES__ENABLED": "false"}
    async with running_service(url, data, clock=SystemClock(), environment=settings) as service:  # type: ignore[arg-type]
        services = service.services
        application_id = await create_model(services.storage)
        for start in range(0, MANY_USERS, AT_ONCE):
            await services.storage.runner.write(partial(insert_people, application_id, range(start, start + AT_ONCE)))
        await services.storage.runner.write(analyze)
        await services.accounts.administration.create(
            login=LOGIN, nick="Ada", password=PASSWORD, origin=ORIGIN, administrator=True
        )
        browser_client = HttpBrowser(service)
        browser_client.client.timeout = TIMEOUT
        await browser_client.sign_in(LOGIN)
        figures = []
        for name, path in screens(application_id).items():
            milliseconds = await time_request(browser_client.client, path)
            figures.append(
                Figure(
                    name=f"console, {name}, {MANY_USERS:,} people, {kind}", value=milliseconds, unit="ms", goal=GOAL
                )
            )
        await browser_client.client.aclose()
    return figures


async def create_model(storage: Storage) -> int:
    application = await create_application(storage, *(some_role(number) for number in range(ROLES)))
    await publish(storage)
    leaf = {"value": False, "protected": False, "description": "Description"}
    rules: Tree = {f"area{area}": {f"rule{n}": leaf for n in range(RULES)} for area in range(AREAS)}
    schema = ApplicationSchema(application_id=application.application_id, private_data=rules, updated_at=NOW)
    await storage.applications.edit_schema(application.application_id, set_fields(schema=schema))
    for number in range(GROUPS):
        condition = GroupCondition(title="tagged", condition=parse_condition({"tag": tag_of(number)}))
        group = a_group(f"{number:024x}", f"Group {number}", conditions=(condition,))
        await storage.groups.create_group(group, [a_record()])
    return application.application_id


def some_role(number: int) -> Role:
    areas = {f"area{(number + n) % AREAS}": {f"rule{m}": {"value": True} for m in range(RULES)} for n in range(5)}
    return a_role(f"role{number}", meta={"private_data": areas})


def insert_people(application_id: int, numbers: range) -> Verb[None]:
    names = [name_of(number) for number in numbers]
    yield Statement(lambda: insert(user_ids)).bulk([{"user_id": name} for name in names])
    yield Statement(lambda: insert(users)).bulk([a_row(name) for name in names])
    yield ADD_NEVER_SEEN.bulk([{"user_id": name} for name in names])
    yield Statement(lambda: insert(user_tags)).bulk([{"user_id": name_of(n), "tag": tag_of(n)} for n in numbers])
    assignments = [
        an_assignment(application_id, number, n) for number in numbers if number < HOLDERS for n in range(3)
    ]
    if assignments:
        yield Statement(lambda: insert(role_assignments)).bulk(assignments)


def an_assignment(application_id: int, number: int, place: int) -> dict[str, object]:
    return {
        "application_id": application_id,
        "user_id": name_of(number),
        "project_id": "",
        "resource_kind": "",
        "resource_id": "",
        "role_key": f"role{(number * 7 + place * 13) % ROLES}",
        "position": place,
        "expired": 0,
        "ttl": 0,
    }


async def time_request(client: httpx2.AsyncClient, path: str) -> float:
    """Milliseconds, the median of several requests without the first, which compiles the template."""
    times = []
    for _ in range(TIMES + 1):
        begin = perf_counter()
        response = await client.get(path)
        times.append((perf_counter() - begin) * 1_000)
        if response.status_code != httpx2.codes.OK:
            raise LookupError(f"{path} answered {response.status_code}")
    return median(times[1:])
