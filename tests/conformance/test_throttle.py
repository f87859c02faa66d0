"""The promises of throttle/store.py."""

import asyncio

from gatehouse.storage.opening import Storage
from gatehouse.throttle.model import GuessLimit
from tests.support.builders import NOW

LIMIT = GuessLimit(free=3, delay=30, longest=100, window=1_000)


async def failures(storage: Storage, count: int, now: int = NOW) -> list[int]:
    return [await storage.throttle.failed(b"anna", LIMIT, now) for _ in range(count)]


async def test_the_door_closes_for_longer_with_every_failure_up_to_a_limit(storage: Storage) -> None:
    assert await failures(storage, 6) == [0, 0, NOW + 30, NOW + 60, NOW + 100, NOW + 100]
    assert await storage.throttle.blocked_until(b"anna") == NOW + 100
    assert await storage.throttle.blocked_until(b"bob") == 0


async def test_every_failure_of_many_at_once_counts(storage: Storage) -> None:
    limit = GuessLimit(free=30, delay=7)
    answers = await asyncio.gather(*(storage.throttle.failed(b"anna", limit, NOW) for _ in range(30)))
    assert sorted(answers) == [0] * 29 + [NOW + 7]


async def test_a_new_window_starts_from_nothing(storage: Storage) -> None:
    await failures(storage, 2)
    assert await failures(storage, 3, NOW + LIMIT.window) == [0, 0, NOW + LIMIT.window + 30]


async def test_success_forgets(storage: Storage) -> None:
    await failures(storage, 5)
    await storage.throttle.clear(b"anna")
    assert await storage.throttle.blocked_until(b"anna") == 0
    assert await failures(storage, 2) == [0, 0]
