"""Runs heavy work in one worker thread, so that no request holds the event loop (docs/decisions/0028).

The worker and the loop take turns: Python code releases the interpreter every SWITCH_SECONDS when the other waits. A
single call into C (encoding, sorting, decoding) never does, so large data must be processed in slices.
"""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

from gatehouse.kernel.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")

MAX_INLINE_WEIGHT: Final = 5_000  # the maximum weight that runs on the event loop; one unit takes about a microsecond
OFF_LOOP_WEIGHT: Final = MAX_INLINE_WEIGHT + 1  # the weight of work that always runs in the worker
MAX_QUEUED_JOBS: Final = 256  # jobs that wait for the worker; more are refused
SWITCH_SECONDS: Final = 0.0001  # how long the loop waits for the interpreter while the worker computes


class Worker:
    """One thread that runs calls in order."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)  # several would compete with the loop
        self._queued = 0

    async def run(self, function: Callable[[], T]) -> T:
        if self._queued >= MAX_QUEUED_JOBS:
            raise Unavailable(f"{MAX_QUEUED_JOBS} background jobs are waiting")
        self._queued += 1
        try:
            return await asyncio.wrap_future(self._thread.submit(function))
        finally:
            self._queued -= 1


_worker: Final = Worker("heavy-work")
_transaction_worker: Final = Worker("heavy-transaction")


async def run_off_loop(weight: int, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the function: inline when it is light, else in the worker thread, in the order of the calls.

    Raises Unavailable when too many jobs wait. A job should take a tenth of a second at most: longer work is split,
    so that other jobs run in between.
    """
    if weight <= MAX_INLINE_WEIGHT:
        return function(*args, **kwargs)
    return await _worker.run(partial(function, *args, **kwargs))


async def run_off_loop_in_transaction(
    weight: int, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run the same while a database connection and its locks are held; it waits only for other such jobs."""
    if weight <= MAX_INLINE_WEIGHT:
        return function(*args, **kwargs)
    return await _transaction_worker.run(partial(function, *args, **kwargs))


def shorten_switch_interval() -> None:
    """Shorten the switch interval of a serving process.

    With the default of 5 ms each response would wait several times that.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
