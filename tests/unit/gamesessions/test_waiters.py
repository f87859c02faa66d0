"""Waiters wake up in any order of events."""

import asyncio

import pytest

from gatehouse.gamesessions.model import GameSessionState, SessionSnapshot
from gatehouse.gamesessions.waiters import Waiter, Waiters, WakeReason
from tests.support.clock import run_ready_tasks

FINAL = (WakeReason.TIME_OUT, WakeReason.DISPLACED, WakeReason.LEFT, WakeReason.STOPPING)


@pytest.mark.parametrize("final", FINAL)
async def test_final_wake_reason_survives_a_change_in_the_same_loop_turn(final: WakeReason) -> None:
    waiter = Waiter()
    waiting = asyncio.create_task(waiter.wait())
    await asyncio.sleep(0)
    waiter.wake(WakeReason.CHANGED)
    waiter.wake(final)
    assert await waiting is WakeReason.CHANGED
    async with asyncio.timeout(1):
        assert await waiter.wait() is final


async def test_a_change_before_anybody_waits_is_told_once() -> None:
    waiter = Waiter()
    waiter.wake(WakeReason.CHANGED)
    waiter.wake(WakeReason.CHANGED)
    assert await waiter.wait() is WakeReason.CHANGED
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await waiter.wait()


async def test_those_who_go_by_something_older_than_what_was_found_are_woken() -> None:
    waiters, woken_sessions = Waiters(), []
    current, older, new = (waiters.join("a") for _ in range(3))
    opened = SessionSnapshot(GameSessionState.PENDING, 1, 0, 0, "node")
    current.seen, older.seen = opened, opened._replace(opened_at=0)
    waiters.add_listener("a", lambda: woken_sessions.append("a"))
    waiters.wake_if_changed("a", opened)
    waiters.wake_if_changed("a", opened)
    assert [await poll.wait() for poll in (older, new)] == [WakeReason.CHANGED] * 2
    assert woken_sessions == ["a"]
    waiting = asyncio.create_task(current.wait())
    await run_ready_tasks()
    assert not waiting.done()
    waiters.wake_if_changed("a", None)
    assert await waiting is WakeReason.CHANGED
    assert woken_sessions == ["a", "a"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_poll_with_the_lower_number_is_displaced_in_either_order(
    order: tuple[int, int],
) -> None:
    waiters = Waiters()
    polls = [waiters.join("a"), waiters.join("a")]
    for n in order:
        waiters.take_over("a", polls[n], n + 1)
    waiters.notify("a")
    assert [await poll.wait() for poll in polls] == [WakeReason.DISPLACED, WakeReason.CHANGED]


async def test_poll_is_not_held_while_the_process_stops() -> None:
    waiters = Waiters()
    waiters.stop()
    assert await waiters.join("a").wait() is WakeReason.STOPPING
