"""The workload interface, and helpers of all workloads."""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol

from tests.faults.clients import CheckedRequest, ClientPool
from tests.faults.fault_setup import FaultSetup, Person
from tests.faults.history import Act, History
from tests.support.database_contents import Rows

API: Final = "/api/permissions/"


class Workload(Protocol):
    async def prepare(self, setup: FaultSetup) -> None:
        """Fill the database before any node runs."""

    def clients(self, pool: ClientPool) -> Sequence[Coroutine[Any, Any, None]]:
        """What clients do until the run is over."""

    async def finish(self, pool: ClientPool) -> None:
        """Send the final requests once all faults are over and no other client is active."""

    def problems(self, history: History, rows: Rows) -> list[str]:
        """The problems in the history and the database, after the nodes have ended."""


def permission_request(
    op: Act, key: str, path: str, body: Mapping[str, Any], who: Person, **more: Any
) -> CheckedRequest:
    """A request to a permission endpoint."""
    return CheckedRequest(op=op, key=key, path=API + path, request={"json": body, "headers": who.headers}, **more)
