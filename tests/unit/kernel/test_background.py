"""Heavy work runs in one thread, in order, with a bound; light work stays on the loop."""

import asyncio
import threading
from functools import partial

import pytest

from gatehouse.kernel import background
from gatehouse.kernel.background import MAX_INLINE_WEIGHT, OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.errors import Unavailable


async def test_light_work_is_done_where_it_is_asked_for() -> None:
    assert await run_off_loop(MAX_INLINE_WEIGHT, threading.current_thread) is threading.current_thread()


async def test_heavy_work_is_done_in_one_other_thread() -> None:
    threads = await asyncio.gather(*(run_off_loop(OFF_LOOP_WEIGHT, threading.current_thread) for _ in range(8)))
    assert len(set(threads)) == 1
    assert threading.current_thread() not in threads


async def test_heavy_work_is_done_in_the_order_it_was_asked_for() -> None:
    done: list[int] = []
    await asyncio.gather(*(run_off_loop(OFF_LOOP_WEIGHT, done.append, number) for number in range(20)))
    assert done == list(range(20))


async def test_background_exception_is_raised_to_the_caller() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await run_off_loop(OFF_LOOP_WEIGHT, int, "none")


async def test_the_loop_goes_on_while_the_worker_computes() -> None:
    """The worker waits for an event that only a later iteration of the loop sets."""
    woken = threading.Event()
    work = asyncio.create_task(run_off_loop(OFF_LOOP_WEIGHT, partial(woken.wait, 30)))
    asyncio.get_running_loop().call_soon(woken.set)
    assert await work


async def test_more_work_than_may_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MAX_QUEUED_JOBS", 2)
    release = threading.Event()
    waiting = [asyncio.create_task(run_off_loop(OFF_LOOP_WEIGHT, partial(release.wait, 30))) for _ in range(2)]
    await asyncio.sleep(0)  # both are in the queue
    with pytest.raises(Unavailable):
        await run_off_loop(OFF_LOOP_WEIGHT, int)
    assert await run_off_loop(MAX_INLINE_WEIGHT, int) == 0
    release.set()
    assert await asyncio.gather(*waiting) == [True, True]
    assert await run_off_loop(OFF_LOOP_WEIGHT, int) == 0
