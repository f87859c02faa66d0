"""A cached property is computed once per instance, and instances do not wait for each other."""

import threading

from gatehouse.kernel.cached_property import cached_property


class Example:
    def __init__(self, waits_for: threading.Event | None = None) -> None:
        self.made = 0
        self._waits_for = waits_for

    @cached_property
    def value(self) -> int:
        self.made += 1
        if self._waits_for is not None:
            assert self._waits_for.wait(30)
        return self.made


def test_cached_value_is_computed_once() -> None:
    thing = Example()
    assert (thing.value, thing.value, thing.made) == (1, 1, 1)


def test_slow_cached_value_does_not_block_another_instance() -> None:
    """In Python 3.11 the standard library's version would deadlock here."""
    go_on = threading.Event()
    slow = Example(go_on)
    thread = threading.Thread(target=lambda: slow.value, daemon=True)
    thread.start()
    assert Example().value == 1
    go_on.set()
    thread.join(30)
    assert slow.value == 1
