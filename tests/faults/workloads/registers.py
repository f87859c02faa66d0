"""W4: records that several clients save and read at once, each with unique values."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from gatehouse.app.services import Services
from tests.faults.clients import CheckedRequest, ClientPool, FaultClient, JudgedAnswer, ask_nodes_in_turn, error_of
from tests.faults.fault_setup import FaultSetup, Person, create_project_application
from tests.faults.history import Act, History, Operation, Result
from tests.faults.invariants.registers import i6_every_record_is_linearizable, i6_versions_grow_by_one
from tests.faults.workloads.signing_in import digest_name
from tests.faults.workloads.workload import permission_request
from tests.support.database_contents import Rows, read_all_tables
from tests.support.permission_builders import a_role, set_roles
from tests.support.studio import PROJECT

CLIENTS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterRecord:
    """One record: how to save a value, and where to find it in a response."""

    key: str
    path: str
    event: str
    about: Mapping[str, Any]  # in every request
    saved: Callable[[str], dict[str, Any]]
    named: Mapping[str, Any]  # within data
    value_in: Callable[[Any], str]

    def save_request(self, who: Person, value: str, version: int | None) -> CheckedRequest:
        data = {**self.named, **self.saved(value), **({} if version is None else {"version": version})}
        return permission_request(
            *(Act.WRITE, self.key, self.path, {"action": "save", **self.about, "data": data}, who),
            value=value,
            event=self.event,
            judge=self._saved_as(value),
            repeatable=version is not None,  # otherwise it could undo what others saved in between
        )

    def read_request(self, who: Person, op: Act = Act.READ) -> CheckedRequest:
        body = {"action": "get", **self.about, "data": self.named}
        return permission_request(op, self.key, self.path, body, who, judge=self._read)

    def _saved_as(self, value: str) -> Callable[[httpx2.Response], JudgedAnswer]:
        def judge(response: httpx2.Response) -> JudgedAnswer:
            if not response.is_success:
                return JudgedAnswer(result=Result.FAIL, note=error_of(response))
            data = response.json()["data"]
            assert self.value_in(data) == value, data
            return JudgedAnswer(result=Result.OK, version=data["version"])

        return judge

    def _read(self, response: httpx2.Response) -> JudgedAnswer:
        if not response.is_success:
            return JudgedAnswer(result=Result.FAIL, note=error_of(response))
        data = response.json()["data"]
        return JudgedAnswer(result=Result.OK, value=self.value_in(data), version=data["version"])


class Registers:
    async def prepare(self, setup: FaultSetup) -> None:
        services, self._owner = setup.services, setup.owner
        roled, schemed = (
            await create_project_application(services, "Roled"),
            await create_project_application(services, "Schemed"),
        )
        names = ("one", "two")
        await services.storage.applications.edit_schema(roled, set_roles(*(a_role(name, roled) for name in names)))
        self._versions = await versions_now(services)
        self._records = [
            *(a_role_record(roled, name) for name in names),
            a_schema_record(schemed),
            a_project_record(),
        ]

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        for record in self._records:
            pool.recorder.write(found_operation(record.key, "", self._versions[record.key]))
        return [self._work(pool.client(f"registers {n}")) for n in range(CLIENTS)]

    async def _work(self, client: FaultClient) -> None:
        number = 0
        while not client.is_over():
            number += 1
            await self._turn(client, client.chance.choice(self._records), digest_name(f"{client.name} {number}"))
            await client.pause()

    async def _turn(self, client: FaultClient, record: RegisterRecord, value: str) -> None:
        """Read, save with or without the version, and read from every node."""
        read = await client.ask(record.read_request(self._owner))
        if client.chance.random() < 0.5:
            await ask_nodes_in_turn(client, record.read_request(self._owner))
            return
        careful = client.pool.storm or client.chance.random() < 0.5
        if read.ok or not careful:
            version = read.operation.version if careful else None
            await client.ask(record.save_request(self._owner, value, version))
            await ask_nodes_in_turn(client, record.read_request(self._owner))

    async def finish(self, pool: ClientPool) -> None:
        client = pool.client("registers, at the end")
        for record in self._records:
            for reply in await ask_nodes_in_turn(client, record.read_request(self._owner)):
                pool.recorder.write(found_operation(record.key, "in the end", reply.operation.version))

    def problems(self, history: History, rows: Rows) -> list[str]:  # noqa: ARG002 - history tells it all
        keys = {record.key for record in self._records}
        about = [operation for operation in history if operation.key in keys]
        return [*i6_every_record_is_linearizable(about), *i6_versions_grow_by_one(about)]


def found_operation(key: str, value: str, version: int) -> Operation:
    return Operation(
        t0=0, t1=0, node=0, client="", op=Act.FOUND, key=key, value=value, result=Result.OK, version=version
    )


async def versions_now(services: Services) -> dict[str, int]:
    """The versions before the first save."""
    rows = await read_all_tables(services.storage)
    return {
        **{f"role:{row.role_key}": row.version for row in rows["roles"]},
        **{f"schema:{row.application_id}": row.version for row in rows["application_schemas"]},
        **{f"project:{row.project_id}": row.version for row in rows["projects"]},
    }


def a_role_record(application_id: int, name: str) -> RegisterRecord:
    return RegisterRecord(
        key=f"role:{name}",
        path="roles",
        event="role.saved",
        about={"application_id": application_id},
        named={"name": name},
        saved=lambda value: {"description": value},
        value_in=lambda body: body["description"],
    )


def a_schema_record(application_id: int) -> RegisterRecord:
    return RegisterRecord(
        key=f"schema:{application_id}",
        path="meta/schema",
        event="schema.saved",
        about={"application_id": application_id},
        named={},
        saved=lambda value: {"public_data": {f"v{value}": {"value": True}}},
        value_in=lambda body: "".join(body["public_data"])[1:],
    )


def a_project_record() -> RegisterRecord:
    return RegisterRecord(
        key=f"project:{PROJECT}",
        path="project",
        event="project.changed",
        about={},
        named={"id": PROJECT},
        saved=lambda value: {"description": value},
        value_in=lambda body: body["description"],
    )
