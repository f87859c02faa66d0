"""Wake-ups, in whatever order they come."""

import asyncio

import pytest

from gatehouse.gamesessions.waiters import Waiter, Waiters, Woken

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


async def test_when_notices_may_have_been_missed_everyone_looks_again() -> None:
    waiters, told = Waiters(), []
    polls = [waiters.join(gsid) for gsid in ("a", "b")]
    waiters.watch("c", lambda: told.append("c"))
    waiters.hear("")
    assert [await poll.wait() for poll in polls] == [Woken.CHANGED] * 2
    assert told == ["c"]


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
