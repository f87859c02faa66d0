"""Counting of polls that come too early, without HTTP."""

import pytest

from gatehouse.gamesessions import throttle
from gatehouse.gamesessions.throttle import Poller, PollThrottle, PollThrottleLimits
from tests.support.clock import MovableClock


def a_poller(gsid: str = "g", address: str = "192.0.2.7") -> Poller:
    return Poller(gsid=gsid, subject=f"{address} {gsid}", source=address)


def count_polls(counted: PollThrottle, poller: Poller, times: int = 5) -> int:
    counted.set_retry_delay(poller.gsid, 1)
    return [counted.count_poll(poller) for _ in range(times)][-1]


async def test_a_block_doubles_up_to_its_longest() -> None:
    clock = MovableClock()
    counted = PollThrottle(limits=PollThrottleLimits(max_block_seconds=400), clock=clock)
    lasted = []
    for _ in range(6):
        lasted.append(count_polls(counted, a_poller()))
        assert counted.seconds_blocked(a_poller()) == lasted[-1]
        await clock.advance(lasted[-1])
        assert counted.seconds_blocked(a_poller()) == 0
    assert lasted == [60, 120, 240, 400, 400, 400]


async def test_early_polls_of_more_than_a_minute_ago_are_forgotten() -> None:
    clock = MovableClock()
    counted = PollThrottle(limits=PollThrottleLimits(), clock=clock)
    for _ in range(3):
        assert count_polls(counted, a_poller(), 4) == 0
        await clock.advance(61)


async def test_a_key_is_blocked_wherever_it_comes_from_and_no_address_with_it() -> None:
    counted = PollThrottle(limits=PollThrottleLimits(max_blocked_subjects=2), clock=MovableClock())
    for number in range(5):
        keyed = Poller(gsid=f"g{number}", subject="key 1", source=None)
        if not counted.seconds_blocked(keyed):
            count_polls(counted, keyed)
    assert counted.seconds_blocked(Poller(gsid="new", subject="key 1", source=None)) == 60
    assert counted.seconds_blocked(a_poller()) == 0


def test_ht_18_a_million_sessions_and_addresses_do_not_grow_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAX_ENTRIES", 100)
    counted = PollThrottle(limits=PollThrottleLimits(), clock=MovableClock())
    for number in range(1_000):
        count_polls(counted, a_poller(f"g{number}", f"2001:db8::{number:x}"))
    assert max(map(len, counted.caches())) == 100
