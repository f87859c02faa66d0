"""Writes of one request that are rolled back: it runs to its end or its refusal, and nothing is changed."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Generic, TypeVar

from gatehouse.storage.statements import Verb

T = TypeVar("T")

_rolls_back: Final[ContextVar[bool]] = ContextVar("rolls_back", default=False)  # in the task of a request


class _UndoneWrite(Exception, Generic[T]):
    def __init__(self, answer: T) -> None:
        super().__init__()
        self.answer = answer


@contextmanager
def rolled_back_writes() -> Iterator[None]:
    """Roll back every write of this task; later reads do not see them."""
    token = _rolls_back.set(True)
    try:
        yield
    finally:
        _rolls_back.reset(token)


def rolls_back() -> bool:
    return _rolls_back.get()


async def write_and_roll_back(
    write: Callable[[Callable[[], Verb[T]]], Awaitable[T]], make: Callable[[], Verb[T]]
) -> T:
    """Run the verb with this write of a runner, roll back, and return the verb's answer."""

    def undone() -> Verb[T]:
        raise _UndoneWrite((yield from make()))

    token = _rolls_back.set(False)
    try:
        return await write(undone)
    except _UndoneWrite as end:
        answer: T = end.answer
        return answer
    finally:
        _rolls_back.reset(token)
