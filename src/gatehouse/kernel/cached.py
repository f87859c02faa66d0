"""A cached property without a lock."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - it stands in for the standard library's
    """As in the standard library from Python 3.12 on; in 3.11 one lock serves all instances of a class.

    With that lock the event loop would wait for whatever the worker of `kernel/background.py` computes. Two threads
    may compute the same value; of a pure function that does no harm.
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
        instance.__dict__[self._name] = value  # from now on it is found there, and this is not asked
        return value
