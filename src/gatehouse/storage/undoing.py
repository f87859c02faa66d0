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

    def __init__(self, runner: Runner, read_after: Callable[[], Verb[A]]) -> None:
        self._runner = runner
        self._read_after = read_after
        self.state_after: A | None = None

    async def write(
        self,
        make: VerbFactory[T],
        *,
        inline: bool = False,  # noqa: ARG002
        heavy: bool = False,
        single_statement: VerbFactory[T] | None = None,  # noqa: ARG002
        repeatable: bool = False,  # noqa: ARG002
    ) -> T:
        """Never at once: that could not be undone."""

        def undone() -> Verb[T]:
            answer = yield from make()
            raise _RolledBack((answer, (yield from self._read_after())))

        try:
            return await self._runner.write(undone, heavy=heavy)
        except _RolledBack as end:
            answer, self.state_after = end.answer
            # Its frames hold whole models and are held by it: nothing would free them until the next full collection.
            end.__traceback__ = None
            end.answer = None
            return answer  # type: ignore[no-any-return]

    async def read(self, make: Callable[[], Verb[T]]) -> T:
        return await self._runner.read(make)

    async def cached_read(self, key: Hashable, make: Callable[[], Verb[T]]) -> T:
        return await self._runner.cached_read(key, make)

    async def snapshot_read(self, make: Callable[[], Verb[T]]) -> T:
        return await self._runner.snapshot_read(make)

    def listen(self, channel: str, listener: Listener) -> Callable[[], None]:
        return self._runner.listen(channel, listener)

    async def revision(self) -> str:
        return await self._runner.revision()

    async def database_time(self) -> int | None:
        return await self._runner.database_time()

    async def timeline(self) -> str | None:
        return await self._runner.timeline()

    def on_promotion(self, known: str, handle: Callable[[str], Verb[object]]) -> None:
        """Whoever opened the runner has said so."""

    async def close(self) -> None:
        """Whoever opened the runner closes it."""
