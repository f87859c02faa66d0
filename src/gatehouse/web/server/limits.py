"""The limits of a connection, and the timer that enforces them."""

from collections.abc import Callable

from msgspec import Struct

from gatehouse.kernel.clock import Clock, Timer


class ProtocolLimits(Struct, frozen=True, kw_only=True):
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
    """A callback after a time that is set again for every request.

    A timer that fires too early checks the deadline and is started again: a later deadline costs one reading of the
    clock, not a new timer.
    """

    __slots__ = ("_callback", "_clock", "_due", "_fires_at", "_timer")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timer: Timer | None = None
        self._fires_at = 0.0
        self._due = 0.0
        self._callback: Callable[[], None] | None = None

    def set(self, seconds: float, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._due = self._clock.monotonic() + seconds
        if self._timer is None or self._fires_at > self._due:
            self._start_timer(seconds)

    def cancel(self) -> None:
        self._callback = None

    def close(self) -> None:
        """Cancel the deadline and release its timer."""
        self._callback = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_timer(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = self._due
        self._timer = self._clock.call_later(seconds, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        callback, left = self._callback, self._due - self._clock.monotonic()
        if callback is None:
            return
        if left > 0:
            self._start_timer(left)
        else:
            self._callback = None
            callback()
