"""W3: two keys, a hundred members, three assignments, three projects, and unique names."""

import asyncio
from collections.abc import Coroutine, Sequence
from itertools import count
from typing import Any, Final

import httpx2

from tests.faults.clients import CheckedRequest, ClientPool, FaultClient, JudgedAnswer, error_of, repeat_until_over
from tests.faults.fault_setup import FaultSetup, Person, create_person, create_project_application, publishers
from tests.faults.history import Act, History, Result, operations_of
from tests.faults.invariants.registers import i6_every_record_is_linearizable
from tests.faults.invariants.sets import (
    UNKNOWN,
    i5_limits_are_never_exceeded,
    i5_names_are_unique,
    i7_every_acknowledged_element_is_there,
)
from tests.faults.workloads.signing_in import digest_name
from tests.faults.workloads.workload import permission_request
from tests.support.builders import a_record
from tests.support.database_contents import Rows
from tests.support.permission_builders import GROUP, a_group, a_role, set_roles
from tests.support.studio import PROJECT

CLIENTS: Final = 3
KEYS, MEMBERS, MAX_ASSIGNMENTS, PROJECTS, NAME = "keys", "members", "seats", "projects", "name"
MOST: Final = {KEYS: 2, MEMBERS: 100, MAX_ASSIGNMENTS: 3, PROJECTS: 3, NAME: 1}
SEATED: Final = 12  # people who compete for the assignments
SAMPLE_SECONDS: Final = 0.05


class Limits:
    def __init__(self, publishers: int = 6) -> None:
        self._publishers_wanted = publishers
        self._names = count()

    async def prepare(self, setup: FaultSetup) -> None:
        services = setup.services
        self._owner = setup.owner
        self._keyed = await create_project_application(services, "Keyed")
        self._seated = await create_project_application(services, "Seated")
        few = a_role("few", self._seated, user_limit=MOST[MAX_ASSIGNMENTS])
        await services.storage.applications.edit_schema(self._seated, set_roles(few))
        self._people = [await create_person(services) for _ in range(MOST[MEMBERS] + 1)]
        self._publishers: Sequence[Person] = await publishers(services, self._publishers_wanted, MOST[PROJECTS])
        await services.storage.groups.create_group(a_group(), [a_record()])

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        workers = [self._work(pool.client(f"limits {n}"), n) for n in range(CLIENTS)]
        return [*workers, *(self._sample(pool.client(f"sampler {n}"), n) for n in range(len(pool.nodes)))]

    async def _work(self, client: FaultClient, number: int) -> None:
        seated = self._people[number * SEATED // CLIENTS : (number + 1) * SEATED // CLIENTS]

        async def assign(client: FaultClient) -> None:
            await self._assign(client, client.chance.choice(seated))

        await repeat_until_over(
            client, self._key, self._key, assign, assign, self._publish, self._take_name, self._create_group
        )

    # -- limits ---------------------------------------------------------------------------------------

    async def _key(self, client: FaultClient) -> None:
        """Create a key; remove one first if there are two."""
        ask = self._about_keys("save", comment=client.name)
        reply = await client.ask(
            permission_request(
                *(Act.ADD, f"{KEYS}:{self._keyed}", "accessKey", ask, self._owner),
                value=UNKNOWN,
                event="access_key.made",
                judge=judge_made_key,
            )
        )
        if reply.operation.result is Result.FAIL:
            await self._drop_key(client)

    async def _drop_key(self, client: FaultClient) -> None:
        listed = await client.ask(self._listed_keys())
        keys = listed.json["data"] if listed.ok else []
        if keys:
            removed = client.chance.choice(keys)["id"]
            await client.ask(
                permission_request(
                    *(
                        Act.REMOVE,
                        f"{KEYS}:{self._keyed}",
                        "accessKey",
                        self._about_keys("delete", id=removed),
                        self._owner,
                    ),
                    value=str(removed),
                    event="access_key.removed",
                )
            )

    def _about_keys(self, action: str, **data: Any) -> dict[str, Any]:
        return {"action": action, "application_id": self._keyed, "data": data}

    def _listed_keys(self) -> CheckedRequest:
        return permission_request(
            *(Act.COUNT, f"{KEYS}:{self._keyed}", "accessKey", self._about_keys("get"), self._owner),
            judge=lambda answer: judge_count(answer, lambda body: len(body["data"])),
        )

    async def _assign(self, client: FaultClient, who: Person) -> None:
        takes = client.chance.random() < 0.6
        data = {"user_id": who.user_id, "roles": ["few"] if takes else []}
        await client.ask(
            permission_request(
                *(Act.ADD if takes else Act.REMOVE, f"{MAX_ASSIGNMENTS}:{self._seated}", "meta/data"),
                *({"action": "save", "application_id": self._seated, "data": data}, self._owner),
                value=who.user_id,
                event="user_schema.saved",
            )
        )

    async def _publish(self, client: FaultClient) -> None:
        who = client.chance.choice(self._publishers)
        title = f"p {digest_name(f'{client.name} {next(self._names)}')}"
        await client.ask(
            permission_request(
                *(Act.ADD, f"{PROJECTS}:{who.user_id}", "publish", {"project": title}, who),
                value=title.replace(" ", "_"),
                event="project.published",
            )
        )

    async def _take_name(self, client: FaultClient) -> None:
        """Several requests at once ask for the next name, each for its own application."""
        name = f"Name {next(self._names) // 3}"
        data = {"name": name, "project_id": PROJECT, "description": client.name}
        await client.ask(
            permission_request(
                *(Act.ADD, f"{NAME}:{name}", "application", {"action": "save", "data": data}, self._owner),
                value=client.name,
                event="application.created",
            )
        )

    async def _create_group(self, client: FaultClient) -> None:
        """Create a group with a member list of its own; a hundred and one are too many."""
        size = client.chance.choice((40, 99, 100, 101))
        users = [user.user_id for user in client.chance.sample(self._people, size)]
        await client.ask(
            permission_request(
                *(Act.WRITE, f"{MEMBERS}:{GROUP}", "group/access", {"group_id": GROUP, "data": {"users": users}}),
                self._owner,
                value=digest_name(",".join(users)),
                event="group.access_saved",
                repeatable=False,  # it would undo what others saved in between
            )
        )

    # -- counts ---------------------------------------------------------------------------------------

    async def _sample(self, client: FaultClient, node: int) -> None:
        asks = (self._listed_keys, self._listed_members, self._listed_assignments, self._listed_projects)
        number = 0
        while not client.is_over():
            await client.ask(asks[number % len(asks)](), node=node)
            number += 1
            await asyncio.sleep(SAMPLE_SECONDS)

    def _listed_members(self) -> CheckedRequest:
        ask = {"action": "get", "data": {"project_id": PROJECT}}
        return permission_request(
            *(Act.COUNT, f"{MEMBERS}:{GROUP}", "group", ask, self._owner),
            judge=lambda answer: judge_count(answer, lambda body: len(body["data"]["groups"][0]["users"])),
        )

    def _listed_assignments(self) -> CheckedRequest:
        ask = {"action": "get", "application_id": self._seated, "data": {"name": "few"}}
        return permission_request(
            *(Act.COUNT, f"{MAX_ASSIGNMENTS}:{self._seated}", "roles", ask, self._owner),
            judge=lambda answer: judge_count(answer, lambda body: body["data"]["users_count"]),
        )

    def _listed_projects(self) -> CheckedRequest:
        who = self._publishers[next(self._names) % len(self._publishers)]
        return permission_request(
            *(Act.COUNT, f"{PROJECTS}:{who.user_id}", "user/info", {}, who),
            judge=lambda answer: judge_count(answer, lambda body: body["projects"]),
        )

    # -- after the run --------------------------------------------------------------------------------

    async def finish(self, pool: ClientPool) -> None:
        client = pool.client("limits, at the end")
        ask = {"action": "get", "data": {"project_id": PROJECT}}
        for node in range(len(pool.nodes)):
            await client.ask(
                permission_request(*(Act.READ, f"{MEMBERS}:{GROUP}", "group", ask, self._owner), judge=judge_members),
                node=node,
            )

    def problems(self, history: History, rows: Rows) -> list[str]:
        keys = [str(row.key_id) for row in rows["access_keys"] if row.application_id == self._keyed]
        elements = {f"{KEYS}:{self._keyed}": keys}
        for who in self._publishers:
            owned = [row.project_id for row in rows["projects"] if row.author == who.user_id]
            elements[f"{PROJECTS}:{who.user_id}"] = owned
        seats = [row for row in rows["role_assignments"] if row.application_id == self._seated]
        counts = {KEYS: len(keys), MAX_ASSIGNMENTS: len({row.user_id for row in seats})}
        counts |= {f"{PROJECTS} of {who}": len(owned) for who, owned in elements.items() if who.startswith(PROJECTS)}
        names = [row.name for row in rows["applications"] if row.name.startswith("Name ")]
        about = [operation for operation in history if operation.key.partition(":")[0] in (KEYS, PROJECTS)]
        return [
            *i5_limits_are_never_exceeded(history, MOST),
            *(
                f"I5: {number} {what} in the database"
                for what, number in counts.items()
                if number > MOST[what.split()[0]]
            ),
            *i5_names_are_unique(names),
            *(f"I7: {name!r} is nowhere" for name in names_acknowledged(history) - set(names)),
            *i7_every_acknowledged_element_is_there(about, elements),
            *i6_every_record_is_linearizable(
                [operation for operation in history if operation.key.startswith(MEMBERS)]
            ),
        ]


def names_acknowledged(history: History) -> set[str]:
    return {
        operation.key.partition(":")[2]
        for operation in operations_of(history, Act.ADD)
        if operation.ok and operation.key.startswith(f"{NAME}:")
    }


def judge_made_key(response: httpx2.Response) -> JudgedAnswer:
    if not response.is_success:
        return JudgedAnswer(result=Result.FAIL, note=error_of(response))
    return JudgedAnswer(result=Result.OK, value=str(response.json()["data"]["id"]))


def judge_count(response: httpx2.Response, number: Any) -> JudgedAnswer:
    if not response.is_success:
        return JudgedAnswer(result=Result.FAIL, note=error_of(response))
    return JudgedAnswer(result=Result.OK, value=str(number(response.json())))


def judge_members(response: httpx2.Response) -> JudgedAnswer:
    (group,) = response.json()["data"]["groups"]
    return JudgedAnswer(result=Result.OK, value=digest_name(",".join(group["users"])) if group["users"] else "")
