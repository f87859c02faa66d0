"""Memory and stored history are bounded by weight, whatever a project administrator saves (checklist MM)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import asyncpg

from gatehouse.app.house import open_house
from gatehouse.kernel.clock import SystemClock
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.store import Edited
from gatehouse.storage.opening import Storage
from tests.adversarial.measuring import UNLIMITED, Target, client_of
from tests.support.builders import a_record
from tests.support.permission_builders import a_person, a_project, a_role, create_application, publish
from tests.support.processes import Node
from tests.support.service import settings_for
from tests.support.studio import FACTOR, OWNER, PROJECT

RULES: Final = 2_000
ROLES: Final = 60
SAVES: Final = 100
RESIDENT_MOST: Final = 250  # megabytes
DATABASE_MOST: Final = 20  # megabytes
MEGABYTE: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Studio:
    """A project with an owner on a serving process of its own."""

    target: Target
    storage: Storage  # of a second process on the same database: fills it without the server's caches
    headers: dict[str, str]
    url: str

    async def ask(self, path: str, **fields: object) -> Any:
        answer = await self.target.client.post(f"/api/permissions/{path}", json=fields, headers=self.headers)
        assert answer.status_code == 200, answer.text[:300]
        return answer.json()

    async def database(self) -> float:
        """Megabytes of the database."""
        if self.url.startswith("sqlite:"):
            files = Path(self.url.removeprefix("sqlite:///")).parent.glob("gatehouse.db*")
            return sum(file.stat().st_size for file in files) / MEGABYTE
        connection = await asyncpg.connect(self.url)
        try:
            return await connection.fetchval("SELECT pg_database_size(current_database())") / MEGABYTE
        finally:
            await connection.close()


@asynccontextmanager
async def a_studio(url: str, data: Path, **settings: str) -> AsyncIterator[Studio]:
    with Node(data=data, database_url=url, environment={**UNLIMITED, **settings}) as node:
        loaded = settings_for(url, data, port=node.port)
        async with client_of(node) as client, open_house(loaded, clock=SystemClock(), serving=False) as house:
            owner = await a_person(house.storage, OWNER)
            await publish(house.storage, a_project(), owners=[OWNER])
            jwt = await house.user_tokens.issue(owner, auth="login", factor=FACTOR)
            yield Studio(
                target=Target(node=node, data=data, client=client),
                storage=house.storage,
                headers={"Authorization": f"Bearer {jwt}", "Factor": FACTOR},
                url=url,
            )


async def an_application(storage: Storage, *, rules: int, roles: int, name: str = "Shop") -> int:
    made = await create_application(storage, name=name, project_id=PROJECT)
    tree = {
        f"area{n // 100}": {
            f"rule{m}": {"value": False, "protected": False, "description": ""} for m in range(n, n + 100)
        }
        for n in range(0, rules, 100)
    }
    said = {area: {rule: {"value": True} for rule in tree[area]} for area in tree}
    given = [a_role(f"role{n}", made.application_id, meta={"private_data": said}) for n in range(roles)]

    def change(state: ApplicationModel) -> Edited[ApplicationModel]:
        schema = replace(state.schema, private_data=tree)
        return Edited(replace(state, schema=schema, roles={role.key: role for role in given}), [a_record()])

    await storage.applications.edit_schema(made.application_id, change)
    return made.application_id


async def test_mm_01_one_description_saved_a_hundred_times(installed_url: str, tmp_path: Path) -> None:
    async with a_studio(installed_url, tmp_path) as studio:
        before = await studio.database()
        application_id = await an_application(studio.storage, rules=RULES, roles=ROLES)
        filled = await studio.database()
        print("start", studio.target.memory(), before, filled)
        for number in range(SAVES):
            data = {"name": "role7", "description": f"saved for the {number}th time"}
            await studio.ask("roles", action="save", application_id=application_id, data=data)
            await studio.ask("meta/data", action="get", application_id=application_id, data={"type": "list"})
            if number % 10 == 0:
                print(number, studio.target.memory(), await studio.database(), flush=True)
        print("end", studio.target.memory(), await studio.database())
        assert studio.target.memory() < RESIDENT_MOST
        assert await studio.database() - before < DATABASE_MOST
