"""What all connections of one server share."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct, field
from starlette.types import ASGIApp

from gatehouse.kernel.clock import Clock
from gatehouse.web.server.limits import ProtocolLimits


class ServedConnection(asyncio.Protocol):
    __slots__ = ()

    def shutdown(self) -> None:
        """Close the connection, once a request that is running has its response."""


class ServerState(Struct, frozen=True, kw_only=True):
    app: ASGIApp
    limits: ProtocolLimits
    clock: Clock
    create_websocket: "Callable[[ServerState], asyncio.Protocol]"  # a connection that becomes a WebSocket
    connections: set[ServedConnection] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)  # requests that are running

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a request: at once where Python can, so that one that waits for nothing takes no turn of the loop."""
        task = create_task(work)
        if not task.done():
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)


if sys.version_info >= (3, 12):

    def create_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)

else:

    def create_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work)
