"""Delete a removed project permanently; only administrators of the installation may (R5)."""

from msgspec import Struct
from msgspec.structs import asdict

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.model.project import ErasureCounts
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.permissions.store import FullRemovalStore


class FullRemoval(Struct, kw_only=True, eq=False):
    store: FullRemovalStore
    recorder: Recorder

    async def preview(self, actor: Actor, project_id: str) -> ErasureCounts:
        """Raises NoRight, ProjectNotFound, ProjectNotRemoved."""
        require_operation(actor.rights, Operation.ADMINISTER)
        return await self.preview_as_operator(project_id)

    async def remove(self, actor: Actor, project_id: str) -> ErasureCounts:
        """The counts of what was deleted. Raises NoRight, ProjectNotFound, ProjectNotRemoved."""
        require_operation(actor.rights, Operation.ADMINISTER)
        return await self.remove_as_operator(project_id, actor.origin)

    async def preview_as_operator(self, project_id: str) -> ErasureCounts:
        """The counts of what would be deleted, for the operator."""
        return await self.store.project_contents(grammar.check_project_id(project_id, "id"))

    async def remove_as_operator(self, project_id: str, origin: AuditOrigin) -> ErasureCounts:
        """Delete it for the operator, without a check of rights."""

        def entry(gone: ErasureCounts) -> AuditRecord:
            subject = f"project {gone.project_id}"
            return self.recorder.record(
                AuditEvent.PROJECT_ERASED, origin, subject=subject, details=content_counts(gone)
            )

        return await self.store.erase_project(grammar.check_project_id(project_id, "id"), entry)


def content_counts(gone: ErasureCounts) -> dict[str, int]:
    fields = asdict(gone)
    del fields["project_id"], fields["title"]
    return fields
