"""Runs heavy work in one worker thread, so that no request holds the event loop (docs/decisions/0028).

The worker and the loop take turns: Python code gives up the interpreter every SWITCH_SECONDS when the other waits.
A single call into C (encoding, sorting, decoding) never does; whoever has a lot of data for one cuts it into slices.
"""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from gatehouse.kernel.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")

LIGHT: Final = 5_000  # the most weight that is worked off on the loop; one unit takes about a microsecond
HEAVY: Final = LIGHT + 1  # of work that is always the worker's
QUEUE_MOST: Final = 256  # jobs that wait for the worker; more are refused
SWITCH_SECONDS: Final = 0.0005  # how long the loop waits for the interpreter while the worker computes

_worker: Final = ThreadPoolExecutor(1, thread_name_prefix="heavy-work")  # one: several would compete with the loop
_queued = 0


async def run_off_loop(weight: int, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the function: at once when it is light, else in the worker, in the order of the calls.

    Raises Unavailable when too many jobs wait. A job should take a tenth of a second at most: longer work is given
    in pieces, so that others get their turn in between.
    """
    global _queued  # noqa: PLW0603 - of the process, as the interpreter is
    if weight <= LIGHT:
        return function(*args, **kwargs)
    if _queued >= QUEUE_MOST:
        raise Unavailable(f"{QUEUE_MOST} heavy jobs are waiting")
    _queued += 1
    try:
        return await asyncio.wrap_future(_worker.submit(function, *args, **kwargs))
    finally:
        _queued -= 1


def switch_often() -> None:
    """For a process that serves: with the interpreter's own 5 ms each answer would wait several times that."""
    sys.setswitchinterval(SWITCH_SECONDS)
