"""Sorting in slices gives the same result as sorting at once."""

from hypothesis import given
from hypothesis import strategies as st

from gatehouse.kernel import sorting
from gatehouse.kernel.sorting import SORT_SLICE, sort_in_slices


@given(st.integers(0, 2**32), st.integers(1, 10**6))
def test_many_are_sorted_as_by_one_call(seed: int, spread: int) -> None:
    many = [(seed * n) % spread for n in range(SORT_SLICE + 100)]
    assert sort_in_slices(many, key=lambda number: -number) == sorted(many, key=lambda number: -number)


def test_equal_ones_keep_their_order() -> None:
    many = [(n % 7, n) for n in range(3 * SORT_SLICE)]
    assert sort_in_slices(many, key=lambda pair: pair[0]) == sorted(many, key=lambda pair: pair[0])


def test_no_slice_of_distinct_items_is_large() -> None:
    sizes: list[int] = []
    many = [(n * 7_919) % 200_003 for n in range(200_000)]
    real = sorted
    sorting.sorted = lambda items, **more: (sizes.append(len(items := list(items))), real(items, **more))[1]  # type: ignore[attr-defined]
    try:
        sort_in_slices(many, key=int)
    finally:
        del sorting.sorted  # type: ignore[attr-defined]
    assert max(sizes) < 2 * SORT_SLICE
