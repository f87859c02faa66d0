"""Memory and stored history are bounded by size, whatever a project administrator saves (checklist MM)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg
from msgspec.structs import replace

from gatehouse.app.services import open_services
from gatehouse.kernel.clock import SystemClock
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.store import EditResult
from gatehouse.storage.database import Storage
from tests.adversarial.measuring import UNLIMITED, WHOLE, Target, client_of
from tests.support.builders import a_record
from tests.support.permission_builders import a_person, a_project, a_role, create_application, publish
from tests.support.processes import Node
from tests.support.service import load_test_settings
from tests.support.studio import FACTOR, OWNER, PROJECT

MEGABYTE: Final = 2**20
RULES: Final = 2_000
ROLES: Final = 60
SAVES: Final = 100 if WHOLE else 25
RESIDENT_MOST: Final = 250  # megabytes, of the process
DATABASE_MOST: Final = 20 if WHOLE else 14  # megabytes, with all data
CACHE_LEAST: Final = "16"  # megabytes; the smallest setting, so that few applications fill the cache
APPLICATIONS: Final = 40  # half of them fill it


@dataclass(frozen=True, slots=True, kw_only=True)
class Studio:
    """A project and its owner, on a separate serving process."""

    target: Target
    storage: Storage  # the same database without the server, so that filling it does not touch the server's cache
    headers: dict[str, str]
    url: str

    async def ask(self, path: str, **fields: object) -> Any:
        response = await self.target.client.post(f"/api/permissions/{path}", json=fields, headers=self.headers)
        assert response.status_code == 200, response.text[:300]
        return response.json()

    async def list_rules(self, application_id: int) -> int:
        """The number of rules that the owner has there."""
        response = await self.ask("meta/data", action="get", application_id=application_id, data={"type": "list"})
        return len(response["data"])

    async def database(self) -> float:
        """The megabytes of the database, with dead rows and SQLite's write-ahead file."""
        if self.url.startswith("sqlite:"):
            file = Path(self.url.removeprefix("sqlite:///"))
            return sum(path.stat().st_size for path in file.parent.glob(f"{file.name}*")) / MEGABYTE
        connection = await asyncpg.connect(self.url)
        try:
            size: int = await connection.fetchval("SELECT pg_database_size(current_database())")
        finally:
            await connection.close()
        return size / MEGABYTE

    async def cache(self) -> float:
        """The megabytes that the server reports for its permission cache."""
        lines = (await self.target.metrics()).splitlines()
        [line] = [line for line in lines if line.startswith("gatehouse_permission_cache_bytes ")]
        return float(line.split()[1]) / MEGABYTE


@asynccontextmanager
async def a_studio(url: str, data: Path, **settings: str) -> AsyncIterator[Studio]:
    with Node(data=data, database_url=url, environment={**UNLIMITED, **settings}) as node:
        loaded = load_test_settings(url, data, port=node.port)
        async with client_of(node) as client, open_services(loaded, clock=SystemClock(), serving=False) as services:
            owner = await a_person(services.storage, OWNER)
            await publish(services.storage, a_project(), owners=[OWNER])
            jwt = await services.accounts.user_tokens.issue(owner, auth="login", factor=FACTOR)
            yield Studio(
                target=Target(node=node, data=data, client=client),
                storage=services.storage,
                headers={"Authorization": f"Bearer {jwt}", "Factor": FACTOR},
                url=url,
            )


async def an_application(storage: Storage, *, rules: int, roles: int, name: str = "Shop") -> int:
    """Each role names every rule of the schema; the schema allows them all."""
    application = await create_application(storage, name=name, project_id=PROJECT)
    leaf = {"value": True, "protected": False, "description": ""}
    tree = {f"area{n}": {f"rule{m}": leaf for m in range(100)} for n in range(rules // 100)}
    meta = {"private_data": {area: {rule: {"value": True} for rule in branch} for area, branch in tree.items()}}
    new_roles = [a_role(f"role{n}", application.application_id, meta=meta) for n in range(roles)]

    def change(state: ApplicationModel) -> EditResult[ApplicationModel]:
        schema = replace(state.schema, private_data=tree)
        return EditResult(replace(state, schema=schema, roles={role.key: role for role in new_roles}), [a_record()])

    await storage.applications.edit_schema(application.application_id, change)
    return application.application_id


async def test_mm_01_one_description_saved_a_hundred_times_takes_no_memory_and_little_of_the_database(
    installed_url: str, tmp_path: Path
) -> None:
    async with a_studio(installed_url, tmp_path) as studio:
        application_id = await an_application(studio.storage, rules=RULES, roles=ROLES)
        for number in range(SAVES):
            data = {"name": "role7", "description": f"saved {number} times"}
            await studio.ask("roles", action="save", application_id=application_id, data=data)
            if number % 10 == 0:
                assert await studio.list_rules(application_id) == RULES
        assert studio.target.memory() < RESIDENT_MOST
        assert await studio.database() < DATABASE_MOST
        named = {"action": "get", "application_id": application_id, "data": {"name": "role7"}}
        assert (await studio.ask("roles", **named))["data"]["description"] == f"saved {SAVES - 1} times"


async def test_mm_02_many_applications_asked_for_in_turn_stay_under_the_weight_of_the_cache(
    installed_sqlite_url: str, tmp_path: Path
) -> None:
    async with a_studio(installed_sqlite_url, tmp_path, GATEHOUSE__PERMISSIONS__CACHE_MB=CACHE_LEAST) as studio:
        numbers = [
            await an_application(studio.storage, rules=RULES, roles=1, name=f"Shop {n}") for n in range(APPLICATIONS)
        ]
        seen = []
        for number in (*numbers, *numbers):
            assert await studio.list_rules(number) == RULES
            seen.append(await studio.cache())
        assert max(seen) < float(CACHE_LEAST)
        assert max(seen) > float(CACHE_LEAST) * 0.8, "the applications do not fill the cache"
        settled = studio.target.memory()
        for number in numbers:
            await studio.list_rules(number)
        assert studio.target.memory() - settled < 10
