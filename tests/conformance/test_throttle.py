"""The promises of throttle/store.py."""

import asyncio

from gatehouse.storage.opening import Storage
from gatehouse.throttle.model import GuessLimit
from tests.support.builders import NOW

LIMIT = GuessLimit(free=3, delay=30, longest=100, window=1_000)


async def failures(storage: Storage, count: int, now: int = NOW) -> list[int]:
    return [await storage.throttle.failed([("anna", LIMIT)], now) for _ in range(count)]


async def test_the_door_closes_for_longer_with_every_failure_up_to_a_limit(storage: Storage) -> None:
    assert await failures(storage, 6) == [0, 0, NOW + 30, NOW + 60, NOW + 100, NOW + 100]
    assert await storage.throttle.blocked_until(["anna"]) == NOW + 100
    assert await storage.throttle.blocked_until(["bob"]) == 0


async def test_every_failure_of_many_at_once_counts(storage: Storage) -> None:
    limit = GuessLimit(free=30, delay=7)
    answers = await asyncio.gather(*(storage.throttle.failed([("anna", limit)], NOW) for _ in range(30)))
    assert sorted(answers) == [0] * 29 + [NOW + 7]


async def test_a_new_window_starts_from_nothing(storage: Storage) -> None:
    await failures(storage, 2)
    assert await failures(storage, 3, NOW + LIMIT.window) == [0, 0, NOW + LIMIT.window + 30]


async def test_success_forgets(storage: Storage) -> None:
    await failures(storage, 5)
    await storage.throttle.clear(["anna"])
    assert await storage.throttle.blocked_until(["anna"]) == 0
    assert await failures(storage, 2) == [0, 0]


async def test_several_are_counted_together_and_the_longest_block_is_told(storage: Storage) -> None:
    short, long = GuessLimit(free=1, delay=5), GuessLimit(free=1, delay=50)
    assert await storage.throttle.failed([("pair", short), ("account", long)], NOW) == NOW + 50
    assert await storage.throttle.blocked_until(["pair", "source"]) == NOW + 5
    assert await storage.throttle.blocked_until(["pair", "account"]) == NOW + 50
    await storage.throttle.clear(["account", "pair"])
    assert await storage.throttle.blocked_until(["pair", "account"]) == 0


async def test_callers_that_count_the_same_subjects_crosswise_never_deadlock(storage: Storage) -> None:
    limit = GuessLimit(free=1_000)
    pairs = [[("a", limit), ("b", limit)], [("b", limit), ("a", limit)]]
    assert set(await asyncio.gather(*(storage.throttle.failed(pairs[n % 2], NOW) for n in range(40)))) == {0}
