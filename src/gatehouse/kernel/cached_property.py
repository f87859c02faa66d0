"""A cached property without a lock."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - it stands in for the standard library's
    """A cached property as in Python 3.12; in Python 3.11 one lock is shared by all instances of a class.

    With that lock the event loop would wait for whatever the worker of `kernel/background.py` computes. Two threads
    may compute the same value, which is harmless for a pure function.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> Self | T:
        if instance is None:
            return self
        value = self._make(instance)
        instance.__dict__[self._name] = value  # later reads find it there
        return value
