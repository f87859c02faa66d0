"""Edits carried out and undone (RehearsalStore)."""

from collections.abc import Collection
from functools import partial

from gatehouse.permissions.model.crowd import DryRunResult
from gatehouse.storage.permissions.applications import ApplicationStorage
from gatehouse.storage.permissions.crowds import application_snapshot
from gatehouse.storage.permissions.facts import facts_of_many
from gatehouse.storage.permissions.groups import GroupStorage
from gatehouse.storage.permissions.projects import ProjectStorage
from gatehouse.storage.permissions.records import UserRecordStorage
from gatehouse.storage.runner import Runner, SqlStore
from gatehouse.storage.statements import Verb
from gatehouse.storage.undoing import DryRunRunner


def read_state_after(
    application_id: int, project_ids: Collection[str], user_ids: Collection[str]
) -> Verb[DryRunResult]:
    people = yield from facts_of_many(user_ids, [application_id])
    named = {project_id for one in people for project_id in one.projects}
    return DryRunResult(
        snapshot=(yield from application_snapshot(application_id, named | set(project_ids))),
        people={one.subject.user_id: one for one in people},
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
