"""How many statements applying a file takes for each further entry: on PostgreSQL each is a round trip."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import pytest

from gatehouse.permissions.model import central
from gatehouse.storage.database import Storage
from gatehouse.storage.provision import ProvisionStorage
from gatehouse.storage.runner import VerbFactory
from gatehouse.storage.statements import Verb, VerbStep
from tests.support.builders import NOW
from tests.unit.provision.provision_setup import ProvisionSetup

T = TypeVar("T")
File = Mapping[str, list[dict[str, Any]]]
FEW, MORE = 3, 8  # entries


class CountingRunner:
    """Runs writes on another runner and remembers their steps."""

    def __init__(self, storage: Storage) -> None:
        self._runner = storage.runner
        self.steps: list[VerbStep] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._runner, name)

    async def write(self, make: VerbFactory[T], **arguments: Any) -> T:
        return await self._runner.write(lambda: self._counted(make()), **arguments)

    def _counted(self, verb: Verb[T]) -> Verb[T]:
        self.steps.clear()
        step = next(verb)
        while True:
            self.steps.append(step)
            rows = yield step
            try:
                step = verb.send(rows)
            except StopIteration as end:
                answer: T = end.value
                return answer


def people(count: int, **fields: object) -> list[dict[str, Any]]:
    return [{"user_id": str(1_000 + n), "login": f"p{n}@studio.example", "nick": "P", **fields} for n in range(count)]


def ids(count: int) -> list[str]:
    return [user["user_id"] for user in people(count)]


SHOP: Final = {"application_id": 60_001, "name": "Shop", "roles": {"buyer": {}}}


def records(count: int, role: str) -> File:
    users = {user_id: {"roles": [{"name": role}]} for user_id in ids(count)}
    return {"applications": [{**SHOP, "users": users}]}


def clients(count: int, name: str) -> File:
    return {"clients": [{"client_id": f"c{n}", "name": name, "redirect_hosts": ["localhost"]} for n in range(count)]}


def projects(count: int) -> File:
    return {"projects": [{"title": f"Project {n}"} for n in range(count)]}


def applications(count: int) -> File:
    return {"applications": [{"name": f"Application {n}"} for n in range(count)]}


def groups(count: int) -> File:
    return {"groups": [{"project_id": "studio", "title": f"Group {n}"} for n in range(count)]}


def bans(count: int) -> File:
    return {"bans": [{"user_id": user_id} for user_id in ids(count)]}


STUDIO: Final[File] = {"users": people(MORE), "projects": [{"title": "Studio"}], "applications": [SHOP]}


# What is stored before, a file with so many entries, and the statements that one more entry may take.
@pytest.mark.parametrize(
    ("before", "file", "most"),
    [
        pytest.param({}, lambda n: {"users": people(n, tags=["x"], purchases=["y"])}, 0, id="users"),
        pytest.param(STUDIO, lambda n: {"users": people(n, nick="Q", tags=["x"])}, 11, id="changed-users"),
        pytest.param(STUDIO, lambda n: records(n, "buyer"), 0, id="records"),
        pytest.param({}, lambda n: clients(n, "C"), 2, id="clients"),
        pytest.param(clients(MORE, "C"), lambda n: clients(n, "D"), 4, id="changed-clients"),
        pytest.param({}, projects, 15, id="projects"),
        pytest.param({}, applications, 4, id="applications"),
        pytest.param(STUDIO, groups, 5, id="groups"),
        pytest.param(STUDIO, bans, 6, id="bans"),
    ],
)
async def test_one_more_entry_of_a_file_takes_few_statements(
    storage: Storage, before: File, file: Callable[[int], File], most: int
) -> None:
    await storage.permissions.install_central(central.application(NOW), central.schema(NOW), central.roles())
    runner = CountingRunner(storage)
    setup = ProvisionSetup(ProvisionStorage(runner, storage.ban_copies))
    if before:
        await setup.apply(**before)
    counts = []
    for number in (FEW, MORE):
        assert len((await setup.plan(**file(number))).changes) >= number
        counts.append(len(runner.steps))
    assert counts[1] - counts[0] <= most * (MORE - FEW)
