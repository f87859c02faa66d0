"""Dry runs: run verbs and roll back, to see the result of a save, refusals included, without saving."""

from collections.abc import Callable, Collection, Hashable, Mapping
from functools import partial
from typing import Generic, TypeVar

from gatehouse.permissions.model.candidates import DryRunResult
from gatehouse.storage.permissions.applications import ApplicationStorage
from gatehouse.storage.permissions.candidates import application_snapshot
from gatehouse.storage.permissions.facts import facts_of_many
from gatehouse.storage.permissions.groups import GroupStorage
from gatehouse.storage.permissions.projects import ProjectStorage
from gatehouse.storage.permissions.user_records import UserRecordStorage
from gatehouse.storage.runner import Listener, Runner, SqlStore, VerbFactory
from gatehouse.storage.statements import Verb

T = TypeVar("T")
A = TypeVar("A")


class _RolledBack(Exception, Generic[T]):
    def __init__(self, answer: T) -> None:
        super().__init__()
        self.answer = answer


class DryRunRunner(Generic[A]):
    """Writes end in a rollback; just before it, `read_after` reads the new state.

    Writes take locks like any save, but nothing is committed and no listener is notified.
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
        """Run the verb without `single_statement`, which could not be rolled back."""

        def undone() -> Verb[T]:
            answer = yield from make()
            raise _RolledBack((answer, (yield from self._read_after())))

        try:
            return await self._runner.write(undone, heavy=heavy)
        except _RolledBack as end:
            answer, self.state_after = end.answer
            # The exception and its frames, which hold whole models, refer to each other: only a full garbage
            # collection would free them.
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

    def connection_counts(self) -> Mapping[str, int]:
        return self._runner.connection_counts()

    def on_promotion(self, known: str, handle: Callable[[str], Verb[object]]) -> None:
        """Do nothing: the wrapped runner has its own handler."""

    async def close(self) -> None:
        """Do nothing: the wrapped runner is closed by its owner."""


# Edits that are made and rolled back (DryRunStore).


def read_nothing() -> Verb[None]:
    """Read nothing after the writes: they only have to succeed."""
    yield from ()


def read_state_after(
    application_id: int, project_ids: Collection[str], user_ids: Collection[str]
) -> Verb[DryRunResult]:
    people = yield from facts_of_many(user_ids, [application_id])
    named = {project_id for person in people for project_id in person.projects}
    return DryRunResult(
        snapshot=(yield from application_snapshot(application_id, named | set(project_ids))),
        people={person.subject.user_id: person for person in people},
    )


class DryRunStores:
    def __init__(
        self, runner: Runner, application_id: int, project_ids: Collection[str], user_ids: Collection[str]
    ) -> None:
        self._runner = DryRunRunner(runner, partial(read_state_after, application_id, project_ids, user_ids))
        self.applications = ApplicationStorage(self._runner)
        self.groups = GroupStorage(self._runner)
        self.projects = ProjectStorage(self._runner)
        self.user_records = UserRecordStorage(self._runner)

    @property
    def state_after(self) -> DryRunResult:
        if self._runner.state_after is None:
            raise LookupError("no dry run yet")
        return self._runner.state_after


class DryRunStorage(SqlStore):
    def dry_run(self, application_id: int, project_ids: Collection[str], user_ids: Collection[str]) -> DryRunStores:
        return DryRunStores(self.runner, application_id, project_ids, user_ids)
