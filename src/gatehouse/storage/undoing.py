"""Carries verbs out and undoes them: what would come of a save, refusals included, without saving."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from gatehouse.storage.runner import Listener, Runner, VerbFactory
from gatehouse.storage.statements import Verb

T = TypeVar("T")
A = TypeVar("A")


class _RolledBack(Exception, Generic[T]):
    def __init__(self, answer: T) -> None:
        super().__init__()
        self.answer = answer


class DryRunRunner(Generic[A]):
    """Acts end in a rollback; just before it, `afterwards` reads what the act has made.

    Whoever acts waits for others and they for him, as with any save, but nothing is kept and nobody is woken.
    """

    def __init__(self, runner: Runner, afterwards: Callable[[], Verb[A]]) -> None:
        self._runner = runner
        self._afterwards = afterwards
        self.seen: A | None = None

    async def act(
        self,
        make: VerbFactory[T],
        *,
        brief: bool = False,  # noqa: ARG002
        heavy: bool = False,
        at_once: VerbFactory[T] | None = None,  # noqa: ARG002
        repeatable: bool = False,  # noqa: ARG002
    ) -> T:
        """Never at once: that could not be undone."""

        def undone() -> Verb[T]:
            answer = yield from make()
            raise _RolledBack((answer, (yield from self._afterwards())))

        try:
            return await self._runner.act(undone, heavy=heavy)
        except _RolledBack as end:
            answer, self.seen = end.answer
            # Its frames hold whole models and are held by it: nothing would free them until the next full collection.
            end.__traceback__ = None
            end.answer = None
            return answer  # type: ignore[no-any-return]

    async def look(self, make: Callable[[], Verb[T]]) -> T:
        return await self._runner.look(make)

    async def recall(self, key: Hashable, make: Callable[[], Verb[T]]) -> T:
        return await self._runner.recall(key, make)

    async def survey(self, make: Callable[[], Verb[T]]) -> T:
        return await self._runner.survey(make)

    def listen(self, channel: str, listener: Listener) -> Callable[[], None]:
        return self._runner.listen(channel, listener)

    async def revision(self) -> str:
        return await self._runner.revision()

    async def time(self) -> int | None:
        return await self._runner.time()

    async def timeline(self) -> str | None:
        return await self._runner.timeline()

    def when_promoted(self, known: str, note: Callable[[str], Verb[object]]) -> None:
        """Whoever opened the runner has said so."""

    async def close(self) -> None:
        """Whoever opened the runner closes it."""
