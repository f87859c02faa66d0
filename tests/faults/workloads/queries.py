"""W7: permissions are queried all the time and changed now and then; no cache may return an old value."""

from collections.abc import Coroutine, Sequence
from typing import Any, Final

import httpx2

from gatehouse.permissions.model.rules import ROOT
from tests.faults.clients import (
    CheckedRequest,
    ClientPool,
    FaultClient,
    JudgedAnswer,
    ask_nodes_in_turn,
    ask_nodes_together,
    error_of,
)
from tests.faults.fault_setup import FaultSetup, create_person, create_project_application, write_user_record
from tests.faults.history import Act, History, Result
from tests.faults.invariants.registers import i6_every_record_is_linearizable
from tests.faults.workloads.signing_in import digest_name
from tests.faults.workloads.workload import permission_request
from tests.support.database_contents import Rows
from tests.support.permission_builders import a_role, holdings_with, set_roles

READERS: Final = 2
RULE: Final = "rule"


class Queries:
    async def prepare(self, setup: FaultSetup) -> None:
        services, self._owner = setup.services, setup.owner
        self._asked = await create_project_application(services, "Asked")
        await services.storage.applications.edit_schema(self._asked, set_roles(a_role("reader", self._asked)))
        self._people = [await create_person(services) for _ in range(READERS)]
        for person in self._people:
            await write_user_record(services, person.user_id, self._asked, scopes={ROOT: holdings_with("reader")})

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        readers = [self._read(pool.client(f"queries {n}"), n) for n in range(READERS)]
        return [self._change(pool.client("rules")), *readers]

    async def _change(self, client: FaultClient) -> None:
        number = 0
        while not client.is_over():
            number += 1
            await client.ask(self._saving(f"v{digest_name(f'{client.pool.seed} {number}')}"))
            await client.pause(0.2)

    def _saving(self, value: str) -> CheckedRequest:
        data = {"name": "reader", "meta": {"private_data": {value: {"value": True}}}}
        body = {"action": "save", "application_id": self._asked, "data": data}
        return permission_request(
            *(Act.WRITE, f"{RULE}:{self._asked}", "roles", body, self._owner),
            value=value,
            event="role.saved",
            repeatable=False,  # only this client saves: the next value is the response
        )

    async def _read(self, client: FaultClient, number: int) -> None:
        while not client.is_over():
            await ask_nodes_together(client, self._asking(number))
            await client.pause()

    def _asking(self, number: int) -> CheckedRequest:
        body: dict[str, Any] = {"action": "get", "application_id": self._asked, "data": {"type": "list_short"}}
        return permission_request(
            *(Act.READ, f"{RULE}:{self._asked}", "meta/data", body, self._people[number]), judge=judge_rule
        )

    async def finish(self, pool: ClientPool) -> None:
        await ask_nodes_in_turn(pool.client("queries, at the end"), self._asking(0))

    def problems(self, history: History, rows: Rows) -> list[str]:  # noqa: ARG002 - history tells it all
        return i6_every_record_is_linearizable(
            [operation for operation in history if operation.key == f"{RULE}:{self._asked}"]
        )


def judge_rule(response: httpx2.Response) -> JudgedAnswer:
    if not response.is_success:
        return JudgedAnswer(result=Result.FAIL, note=error_of(response))
    return JudgedAnswer(result=Result.OK, value="".join(response.json()["data"]))
