"""The limits of a connection, and the timer that enforces them."""

from collections.abc import Callable
from dataclasses import dataclass

from gatehouse.kernel.clock import Clock, Timer


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolLimits:
    """The figures of checklist S-19 and HT-03. The durations are seconds."""

    header_bytes: int = 16_384  # names and values of one request together
    url_bytes: int = 8_192
    headers: int = 100
    pipelined: int = 100  # requests that may queue behind the one being answered
    head: float = 10.0  # from the first byte to the end of the headers
    body: float = 30.0  # from there to the end of the body
    idle: float = 75.0  # between two requests
    drain: float = 60.0  # for a client to read what we have written
    linger: float = 2.0  # for a client to stop sending after our last response

    @property
    def head_bytes(self) -> int:
        return self.url_bytes + self.header_bytes


class Deadline:
    """At most one timer; setting it anew forgets the old one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timer: Timer | None = None

    def set(self, seconds: float, callback: Callable[[], None]) -> None:
        self.cancel()
        self._timer = self._clock.call_later(seconds, callback)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
