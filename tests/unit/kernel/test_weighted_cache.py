"""The cache keeps what fits into its weight, newest use first, and drops whole groups."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from gatehouse.kernel.cache import ENTRY_WEIGHT, CacheHandle, WeightedCache

HEAVY: Final = 10_000  # bytes of one value; two fit into the cache, three do not
LIMIT: Final = 2 * (HEAVY + ENTRY_WEIGHT)


def cache_of(*names: str) -> WeightedCache[str]:
    cache: WeightedCache[str] = WeightedCache(LIMIT)
    for name in names:
        cache.put(0, name, name, HEAVY)
    return cache


def cached_names(cache: WeightedCache[str], *names: str) -> list[str]:
    return [name for name in names if cache.get(0, name) is not None]


def test_least_recently_used_entry_is_dropped_first() -> None:
    cache = cache_of("a", "b")
    assert cache.get(0, "a") == "a"
    cache.put(0, "c", "c", HEAVY)
    assert cached_names(cache, "a", "b", "c") == ["a", "c"]
    assert cache.weight == LIMIT


def test_entry_replaces_the_one_of_the_same_key() -> None:
    cache = cache_of("a", "b")
    cache.put(0, "b", "newer", HEAVY)
    assert (cache.get(0, "a"), cache.get(0, "b"), len(cache), cache.weight) == ("a", "newer", 2, LIMIT)


def test_value_heavier_than_the_cache_is_not_kept_and_drops_no_other() -> None:
    cache = cache_of("a", "b")
    cache.put(0, "c", "c", LIMIT)
    assert cached_names(cache, "a", "b", "c") == ["a", "b"]


def test_value_that_grows_counts_with_its_new_weight() -> None:
    cache = cache_of("a")
    ticket = cache.put(0, "b", "b", HEAVY)
    cache.add_weight(ticket, HEAVY)
    assert cached_names(cache, "a", "b") == ["b"]
    cache.add_weight(ticket, LIMIT)
    assert (len(cache), cache.weight) == (0, 0)


def test_growth_of_a_replaced_value_is_not_counted() -> None:
    cache = cache_of("a")
    ticket = cache.put(0, "b", "b", HEAVY)
    cache.put(0, "b", "b", HEAVY)
    cache.add_weight(ticket, HEAVY)
    assert cache.weight == LIMIT


def test_dropped_group_takes_all_its_entries() -> None:
    cache = cache_of("a")
    cache.put(1, "a", "other", HEAVY)
    cache.drop_group(0)
    assert (cache.get(0, "a"), cache.get(1, "a"), len(cache)) == (None, "other", 1)
    cache.drop_group(0)
    cache.clear()
    assert (len(cache), cache.weight) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, LIMIT + 1), st.integers(0, 3))))
def test_weight_is_the_sum_of_what_is_kept_and_never_over_the_limit(
    steps: list[tuple[int, int, int, int]],
) -> None:
    cache: WeightedCache[int] = WeightedCache(LIMIT)
    tickets: list[CacheHandle] = []
    for group, key, weight, kind in steps:
        if kind == 0:
            cache.drop_group(group)
        elif kind == 1 and tickets:
            cache.add_weight(tickets[key % len(tickets)], weight)
        else:
            tickets.append(cache.put(group, key, weight, weight))
        assert cache.weight == sum(entry.weight for entry in cache._entries.values()) <= LIMIT
        assert {(one, each) for one, keys in cache._groups.items() for each in keys} == cache._entries.keys()
