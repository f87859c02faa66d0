"""Sort long lists in slices: one long call would block the interpreter (kernel/background.py)."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, Final, TypeVar

T = TypeVar("T")

SORT_SLICE: Final = 10_000  # sorted by one call
SAMPLES_PER_SLICE: Final = 64  # of each slice, to find where the slices begin


def sort_in_slices(items: Iterable[T], key: Callable[[T], Any]) -> list[T]:
    """Sort like `sorted`."""
    elements = list(items)
    if len(elements) <= SORT_SLICE:
        return sorted(elements, key=key)
    bounds = sorted(map(key, elements[:: SORT_SLICE // SAMPLES_PER_SLICE]))[
        SAMPLES_PER_SLICE - 1 :: SAMPLES_PER_SLICE
    ]
    slices: list[list[T]] = [[] for _ in range(len(bounds) + 1)]
    for item in elements:
        slices[bisect_right(bounds, key(item))].append(item)
    return list(chain.from_iterable(sorted(part, key=key) for part in slices))
