"""Contract tests of throttle/limits.py."""

import asyncio

from gatehouse.kernel.errors import TooMany
from gatehouse.storage.database import Storage
from gatehouse.throttle.limits import AttemptLimit
from tests.support.builders import NOW

LIMIT = AttemptLimit(free_attempts=3, first_delay=30, max_delay=100, window=1_000)


async def failures(storage: Storage, count: int, now: int = NOW) -> list[int]:
    return [await storage.throttle.record_failures([("anna", LIMIT)], now) for _ in range(count)]


async def test_the_door_closes_for_longer_with_every_failure_up_to_a_limit(storage: Storage) -> None:
    assert await failures(storage, 6) == [0, 0, NOW + 30, NOW + 60, NOW + 100, NOW + 100]
    assert await storage.throttle.blocked_until(["anna"]) == NOW + 100
    assert await storage.throttle.blocked_until(["bob"]) == 0


async def test_every_concurrent_failure_is_counted(storage: Storage) -> None:
    limit = AttemptLimit(free_attempts=30, first_delay=7)
    answers = await asyncio.gather(*(storage.throttle.record_failures([("anna", limit)], NOW) for _ in range(30)))
    assert sorted(answers) == [0] * 29 + [NOW + 7]


async def test_a_new_window_starts_from_nothing(storage: Storage) -> None:
    await failures(storage, 2)
    assert await failures(storage, 3, NOW + LIMIT.window) == [0, 0, NOW + LIMIT.window + 30]


async def test_success_forgets(storage: Storage) -> None:
    await failures(storage, 5)
    await storage.throttle.clear_failures(["anna"])
    assert await storage.throttle.blocked_until(["anna"]) == 0
    assert await failures(storage, 2) == [0, 0]


async def test_several_are_counted_together_and_the_longest_block_is_told(storage: Storage) -> None:
    short, long = AttemptLimit(free_attempts=1, first_delay=5), AttemptLimit(free_attempts=1, first_delay=50)
    assert await storage.throttle.record_failures([("pair", short), ("account", long)], NOW) == NOW + 50
    assert await storage.throttle.blocked_until(["pair", "source"]) == NOW + 5
    assert await storage.throttle.blocked_until(["pair", "account"]) == NOW + 50
    await storage.throttle.clear_failures(["account", "pair"])
    assert await storage.throttle.blocked_until(["pair", "account"]) == 0


async def test_callers_that_count_the_same_subjects_crosswise_never_deadlock(storage: Storage) -> None:
    limit = AttemptLimit(free_attempts=1_000)
    pairs = [[("a", limit), ("b", limit)], [("b", limit), ("a", limit)]]
    assert set(await asyncio.gather(*(storage.throttle.record_failures(pairs[n % 2], NOW) for n in range(40)))) == {0}


async def begin_attempt(storage: Storage, *subjects: str, now: int = NOW, limit: AttemptLimit = LIMIT) -> int:
    """Return 0 when the guess is allowed, otherwise the seconds to wait."""
    try:
        await storage.throttle.begin_attempts([(subject, limit) for subject in subjects], now)
    except TooMany as refused:
        return refused.retry_after
    return 0


async def test_a_guess_counts_before_it_is_made_and_the_last_one_closes_the_door_behind_it(storage: Storage) -> None:
    assert [await begin_attempt(storage, "anna") for _ in range(5)] == [0, 0, 0, 30, 30]
    assert await begin_attempt(storage, "anna", now=NOW + 29) == 1
    assert await begin_attempt(storage, "anna", now=NOW + 30) == 0
    assert await begin_attempt(storage, "anna", now=NOW + 30) == 60


async def test_concurrent_attempts_stay_within_the_limit(storage: Storage) -> None:
    limit = AttemptLimit(free_attempts=7, first_delay=9)
    answers = await asyncio.gather(*(begin_attempt(storage, "anna", limit=limit) for _ in range(30)))
    assert sorted(answers) == [0] * 7 + [9] * 23


async def test_attempt_refused_for_one_subject_counts_for_none_and_gets_the_longest_delay(storage: Storage) -> None:
    await failures(storage, 4)
    await storage.throttle.record_failures([("zoe", AttemptLimit(free_attempts=1, first_delay=90))], NOW)
    assert [await begin_attempt(storage, "anna", "bob", "zoe") for _ in range(5)] == [90] * 5
    assert [await begin_attempt(storage, "bob") for _ in range(4)] == [0, 0, 0, 30]


async def test_a_guess_taken_back_opens_the_door_it_had_closed(storage: Storage) -> None:
    assert [await begin_attempt(storage, "anna") for _ in range(4)] == [0, 0, 0, 30]
    await storage.throttle.undo_attempts([("anna", LIMIT)], NOW)
    assert [await begin_attempt(storage, "anna") for _ in range(2)] == [0, 30]


async def test_far_beyond_the_limit_too_only_what_that_guess_had_closed_is_opened(storage: Storage) -> None:
    await failures(storage, 3)
    assert await begin_attempt(storage, "anna", now=NOW + 30) == 0
    assert await begin_attempt(storage, "anna", now=NOW + 31) == 59
    await storage.throttle.undo_attempts([("anna", LIMIT)], NOW + 30)
    assert await begin_attempt(storage, "anna", now=NOW + 31) == 0
    assert await begin_attempt(storage, "anna", now=NOW + 91) == 0  # a slow first one is still running
    await storage.throttle.undo_attempts([("anna", LIMIT)], NOW + 31)
    assert await begin_attempt(storage, "anna", now=NOW + 91) == 100


async def test_a_guess_of_a_window_that_is_over_is_not_taken_from_the_next(storage: Storage) -> None:
    assert await begin_attempt(storage, "anna") == 0
    later = NOW + LIMIT.window
    assert [await begin_attempt(storage, "anna", now=later) for _ in range(2)] == [0, 0]
    await storage.throttle.undo_attempts([("anna", LIMIT)], NOW)
    assert [await begin_attempt(storage, "anna", now=later) for _ in range(2)] == [0, 30]


async def test_forgiven_subject_is_reset_and_the_shared_count_drops_by_one(storage: Storage) -> None:
    assert [await begin_attempt(storage, "anna", "office") for _ in range(3)] == [0, 0, 0]
    await storage.throttle.undo_attempts([("office", LIMIT)], NOW, forgiven=["anna"])
    assert [await begin_attempt(storage, "anna") for _ in range(4)] == [0, 0, 0, 30]
    assert [await begin_attempt(storage, "office") for _ in range(2)] == [0, 30]


async def test_undo_without_attempts_changes_nothing(storage: Storage) -> None:
    await storage.throttle.undo_attempts([("anna", LIMIT)], NOW, forgiven=["bob"])
    assert [await begin_attempt(storage, "anna") for _ in range(4)] == [0, 0, 0, 30]


async def test_guessing_and_being_right_crosswise_never_deadlocks(storage: Storage) -> None:
    limit = AttemptLimit(free_attempts=1_000)

    async def confirm_attempt(first: str, second: str) -> None:
        await storage.throttle.begin_attempts([(first, limit), (second, limit)], NOW)
        await storage.throttle.undo_attempts([(first, limit)], NOW, forgiven=[second])

    await asyncio.gather(*(confirm_attempt(*(("a", "b") if n % 2 else ("b", "a"))) for n in range(40)))
    assert await storage.throttle.blocked_until(["a", "b"]) == 0
