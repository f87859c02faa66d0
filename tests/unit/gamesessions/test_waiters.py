"""Wake-ups, in whatever order they come."""

import asyncio

import pytest

from gatehouse.gamesessions.model import Glimpse, State
from gatehouse.gamesessions.waiters import Waiter, Waiters, Woken
from tests.support.clock import settle

FINAL = (Woken.TIME_OUT, Woken.DISPLACED, Woken.LEFT, Woken.STOPPING)


@pytest.mark.parametrize("final", FINAL)
async def test_what_ends_a_poll_is_not_lost_behind_a_change_in_the_same_turn(final: Woken) -> None:
    waiter = Waiter()
    waiting = asyncio.create_task(waiter.wait())
    await asyncio.sleep(0)
    waiter.wake(Woken.CHANGED)
    waiter.wake(final)
    assert await waiting is Woken.CHANGED
    async with asyncio.timeout(1):
        assert await waiter.wait() is final


async def test_a_change_before_anybody_waits_is_told_once() -> None:
    waiter = Waiter()
    waiter.wake(Woken.CHANGED)
    waiter.wake(Woken.CHANGED)
    assert await waiter.wait() is Woken.CHANGED
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await waiter.wait()


async def test_those_who_go_by_something_older_than_what_was_found_are_woken() -> None:
    waiters, told = Waiters(), []
    current, older, new = (waiters.join("a") for _ in range(3))
    opened = Glimpse(State.PENDING, 1, 0, 0, "node")
    current.seen, older.seen = opened, opened._replace(opened_at=0)
    waiters.watch("a", lambda: told.append("a"))
    waiters.compare("a", opened)
    waiters.compare("a", opened)
    assert [await poll.wait() for poll in (older, new)] == [Woken.CHANGED] * 2
    assert told == ["a"]
    waiting = asyncio.create_task(current.wait())
    await settle()
    assert not waiting.done()
    waiters.compare("a", None)
    assert await waiting is Woken.CHANGED
    assert told == ["a", "a"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_of_two_polls_the_one_with_the_lower_number_is_sent_away_whichever_hears_of_its_number_first(
    order: tuple[int, int],
) -> None:
    waiters = Waiters()
    polls = [waiters.join("a"), waiters.join("a")]
    for n in order:
        waiters.take_over("a", polls[n], n + 1)
    waiters.hear("a")
    assert [await poll.wait() for poll in polls] == [Woken.DISPLACED, Woken.CHANGED]


async def test_whoever_comes_while_the_process_stops_is_not_held() -> None:
    waiters = Waiters()
    waiters.stop()
    assert await waiters.join("a").wait() is Woken.STOPPING
