"""Where a connection goes that asks to become a WebSocket; what is needed for it is loaded with the first one."""

import asyncio
from importlib import import_module
from operator import methodcaller
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.rounds import Rounds
from gatehouse.web.sockets import ROUND, STEPS, TakesTurns

HANDSHAKES: Final = "gatehouse.web.websocket"  # its library takes 4 MB, and most installations have no games


class Upgrades:
    """Stands where uvicorn expects a class of protocols."""

    def __init__(self, clock: Clock) -> None:
        self._rounds: Rounds[TakesTurns] = Rounds(methodcaller("take_turn"), clock=clock, every=ROUND, steps=STEPS)

    def __call__(self, config: Config, server_state: ServerState, app_state: dict[str, Any]) -> asyncio.Protocol:
        made: asyncio.Protocol = import_module(HANDSHAKES).Handshake(
            config, server_state, app_state, rounds=self._rounds
        )
        return made
