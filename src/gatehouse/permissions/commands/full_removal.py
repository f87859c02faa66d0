"""Removing a project for good, once it is removed: only who administers the installation may (R5)."""

from dataclasses import asdict

from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin, Record
from gatehouse.audit.recorder import Recorder
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.model.full_removal import Belongings
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require
from gatehouse.permissions.store import FullRemovalStore


class FullRemoval:
    def __init__(self, *, store: FullRemovalStore, recorder: Recorder) -> None:
        self._store = store
        self._recorder = recorder

    async def what_goes(self, actor: Actor, project_id: str) -> Belongings:
        """Raises NoRight, ProjectNotFound, ProjectNotRemoved."""
        require(actor.rights, Operation.ADMINISTER)
        return await self.count(project_id)

    async def remove(self, actor: Actor, project_id: str) -> Belongings:
        """What went. Raises NoRight, ProjectNotFound, ProjectNotRemoved."""
        require(actor.rights, Operation.ADMINISTER)
        return await self.erase(project_id, actor.origin)

    async def count(self, project_id: str) -> Belongings:
        """What would go, for whoever runs the service."""
        return await self._store.belongings(grammar.check_project_id(project_id, "id"))

    async def erase(self, project_id: str, origin: Origin) -> Belongings:
        """The removal by the hand of whoever runs the service."""

        def entry(gone: Belongings) -> Record:
            subject = f"project {gone.project_id}"
            return self._recorder.record(Event.PROJECT_ERASED, origin, subject=subject, details=counts(gone))

        return await self._store.erase(grammar.check_project_id(project_id, "id"), entry)


def counts(gone: Belongings) -> dict[str, int]:
    fields = asdict(gone)
    del fields["project_id"], fields["title"]
    return fields
