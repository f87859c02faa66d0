"""Whether a refusal costs next to nothing.

What counts is the processor time of this process, client and service together, which a busy machine does not
stretch; and the best of a few tries, because a garbage collection or a background task in between is not the work
that is asked about. Work that grows with the square of its input is too slow in every try. Figures with tighter
bounds are those of `make adversarial`.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")

TRIES: Final = 5


async def await_within_cpu_seconds(seconds: float, ask: Callable[[], Awaitable[T]]) -> T:
    """The answer of the first try that was quick enough."""
    for _ in range(TRIES):
        began = time.process_time()
        answer = await ask()
        if time.process_time() - began < seconds:
            return answer
    raise AssertionError(f"none of {TRIES} tries took less than {seconds} s")


def run_within_cpu_seconds(seconds: float, work: Callable[[], T]) -> T:
    """The result of the first try that was quick enough."""
    for _ in range(TRIES):
        began = time.process_time()
        result = work()
        if time.process_time() - began < seconds:
            return result
    raise AssertionError(f"none of {TRIES} tries took less than {seconds} s")
