"""What a workload is, and what every one of them needs."""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol

from tests.faults.clients import CheckedRequest, ClientPool
from tests.faults.fault_setup import FaultSetup, Person
from tests.faults.history import Act, History
from tests.support.database_contents import Rows

API: Final = "/api/permissions/"


class Workload(Protocol):
    async def prepare(self, scene: FaultSetup) -> None:
        """Before any node is there."""

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        """What they do until the run is over."""

    async def finish(self, pool: ClientPool) -> None:
        """When all is well again and no one else asks anything."""

    def problems(self, history: History, rows: Rows) -> list[str]:
        """What is wrong by the history and by all that the database holds, the nodes being gone."""


def permission_request(
    op: Act, key: str, path: str, body: Mapping[str, Any], who: Person, **more: Any
) -> CheckedRequest:
    """A request to a permission endpoint."""
    return CheckedRequest(op=op, key=key, path=API + path, request={"json": body, "headers": who.headers}, **more)
