"""What all connections of one server share."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp

from gatehouse.kernel.clock import Clock
from gatehouse.web.server.limits import ProtocolLimits


class ServedConnection(asyncio.Protocol):
    __slots__ = ()

    def shutdown(self) -> None:
        """Close the connection, once a request that is running has its response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    app: ASGIApp
    limits: ProtocolLimits
    clock: Clock
    create_websocket: "Callable[[ServerState], asyncio.Protocol]"  # a connection that becomes a WebSocket
    connections: set[ServedConnection] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)  # requests that are running

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
