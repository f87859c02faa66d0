"""Forms that are made from a record once and live as long as it does."""

from collections.abc import Callable
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class DerivedCache:
    """Belongs to one object: a record declares it with `init=False`, so `dataclasses.replace` makes a new one."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[Callable[..., Any], Any] = {}

    def get(self, make: type[T]) -> T | None:
        """The form, if it was made."""
        return self._made.get(make)

    def get_or_make(self, make: Callable[[S], T], source: S) -> T:
        """Two threads may both make it; either form is right."""
        made: T | None = self._made.get(make)
        if made is None:
            made = self._made[make] = make(source)
        return made
