"""Where a connection goes that asks to become a WebSocket; what is needed for it is loaded with the first one."""

import asyncio
from importlib import import_module
from operator import methodcaller
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.rounds import TimerWheel
from gatehouse.web.sockets import ROUND_SECONDS, ROUND_STEPS, TakesTurns

WEBSOCKET_MODULE: Final = "gatehouse.web.websocket"  # its library takes 4 MB, and most installations have no games


class LazyWebSocketProtocol:
    """Stands where uvicorn expects a class of protocols."""

    def __init__(self, clock: Clock) -> None:
        self._rounds: TimerWheel[TakesTurns] = TimerWheel(
            methodcaller("take_turn"), clock=clock, period=ROUND_SECONDS, slots=ROUND_STEPS
        )

    def __call__(self, config: Config, server_state: ServerState, app_state: dict[str, Any]) -> asyncio.Protocol:
        made: asyncio.Protocol = import_module(WEBSOCKET_MODULE).WebSocketHandshake(
            config, server_state, app_state, rounds=self._rounds
        )
        return made
