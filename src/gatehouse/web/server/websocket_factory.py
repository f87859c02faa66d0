"""Creates the protocols of WebSocket handshakes, loaded with the first one."""

import asyncio
from operator import methodcaller
from typing import Final

from gatehouse.kernel.clock import Clock
from gatehouse.kernel.timer_wheel import TimerWheel
from gatehouse.web.server.sockets import TakesTurns
from gatehouse.web.server.state import ServerState

ROUND_SECONDS: Final = 2.5  # seconds between two turns of a socket
ROUND_STEPS: Final = 10  # parts of a round, so that not all sockets are pinged at once


class WebSocketFactory:
    def __init__(self, clock: Clock) -> None:
        self._rounds: TimerWheel[TakesTurns] = TimerWheel(
            methodcaller("take_turn"), clock=clock, period=ROUND_SECONDS, slots=ROUND_STEPS
        )

    def __call__(self, state: ServerState) -> asyncio.Protocol:
        # The WebSocket library takes 4 MB, and few processes need it.
        from gatehouse.web.server.websocket import WebSocketHandshake  # noqa: PLC0415

        return WebSocketHandshake(state, rounds=self._rounds)
