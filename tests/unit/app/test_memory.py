"""Reference cycles are collected, new ones soon (app/garbage_collection.py)."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from gatehouse.app.garbage_collection import COLLECT_ALL_EVERY, COLLECT_EVERY, GarbageCollector
from tests.support.clock import MovableClock


class ReferenceCycle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me: ReferenceCycle | None = self


@pytest.fixture
def tidying_clock() -> Iterator[MovableClock]:
    thresholds, clock = gc.get_threshold(), MovableClock()
    GarbageCollector(clock).start()
    gc.disable()
    yield clock
    gc.enable()
    gc.set_threshold(*thresholds)


async def test_new_rings_go_at_the_next_look_and_old_ones_when_all_is_looked_at(tidying_clock: MovableClock) -> None:
    old = ReferenceCycle()
    await tidying_clock.advance(COLLECT_EVERY)
    new = ReferenceCycle()
    rings = [weakref.ref(old), weakref.ref(new)]
    del old, new
    await tidying_clock.advance(COLLECT_EVERY)
    assert [ring() is None for ring in rings] == [False, True]
    await tidying_clock.advance(COLLECT_ALL_EVERY)
    assert [ring() is None for ring in rings] == [True, True]
