"""What a workload is, and what every one of them needs."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, Protocol

import httpx2

from gatehouse.app.house import House
from tests.faults.calling import Ask, Crew, Heard, error_of
from tests.faults.history import Act, History, Result
from tests.faults.scene import Person, Scene
from tests.support.whole_database import Rows

API: Final = "/api/permissions/"


class Workload(Protocol):
    async def prepare(self, scene: Scene) -> None:
        """Before any node is there."""

    def clients(self, crew: Crew) -> Sequence[Awaitable[None]]:
        """What they do until the run is over."""

    async def last(self, crew: Crew) -> None:
        """When all is well again and nobody else asks anything."""

    async def problems(self, history: History, house: House, rows: Rows) -> list[str]:
        """What must hold of this workload, with the nodes gone."""


def permission(op: Act, key: str, path: str, body: Mapping[str, Any], who: Person, **more: Any) -> Ask:
    """A request to a permission endpoint."""
    return Ask(op=op, key=key, path=API + path, request={"json": body, "headers": who.headers}, **more)


def told_as(answer: httpx2.Response) -> Heard:
    return Heard(
        result=Result.OK if answer.is_success else Result.FAIL, note="" if answer.is_success else error_of(answer)
    )
