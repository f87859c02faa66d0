"""An event loop without waiting or threads, and randomness from a seed."""

import asyncio
import random  # noqa: TID251 - replaces secrets
import selectors
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TypeVar

Chance = random.Random
T = TypeVar("T")
START = 1_800_000_000  # Unix seconds


class Deadlocked(Exception):
    """Every task waits for a different one."""


class JumpingSelector(selectors.SelectSelector):
    """A selector that advances the clock instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Deadlocked
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with virtual time; events of the same time run in the order they were scheduled."""

    def __init__(self) -> None:
        self._hours = JumpingSelector()
        super().__init__(self._hours)

    def time(self) -> float:
        return self._hours.now

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps."""

    def run_in_executor(self, executor: Executor | None, func: Callable[..., T], *args: object) -> asyncio.Future[T]:
        """Run the function on the loop, a little later: a thread would make the order random."""
        del executor
        future: asyncio.Future[T] = self.create_future()
        self.call_soon(self._carry_out, future, func, args)
        return future

    def _carry_out(self, future: asyncio.Future[T], func: Callable[..., T], args: tuple[object, ...]) -> None:
        if future.cancelled():
            return
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is the caller's
            future.set_exception(error)


class VirtualClock:
    """The clock of one node; its wall clock may be wrong, its durations never are."""

    def __init__(self) -> None:
        self.wrong_by = 0

    def now(self) -> int:
        return START + int(self.monotonic()) + self.wrong_by

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        await pass_time(seconds)


async def pass_time(seconds: float) -> None:
    """Let virtual time pass; the process does not wait."""
    await asyncio.sleep(seconds)


@contextmanager
def seeded_secrets(seed: int) -> Iterator[None]:
    """Make the service's ids, tokens and nonces repeatable: `secrets` takes its bytes from the seed."""
    real = random._urandom  # type: ignore[attr-defined]
    random._urandom = Chance(seed).randbytes  # type: ignore[attr-defined]
    try:
        yield
    finally:
        random._urandom = real  # type: ignore[attr-defined]
