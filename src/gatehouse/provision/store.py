"""What provisioning needs kept."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.audit.model import AuditRecord
from gatehouse.provision.model import ReadScope, StoredState, Write


class ProvisionStore(Protocol):
    async def read_state(self, scope: ReadScope, now: int) -> StoredState:
        """What is stored, as of one moment."""

    def as_dry_run(self) -> "ProvisionStore":
        """The same, in which nothing is kept: what is carried out is refused or else undone."""

    async def write_changes(
        self, writes: Sequence[Write], records: Sequence[AuditRecord], *, setup_closed: AuditRecord | None, now: int
    ) -> None:
        """Do all of it in the order given, and keep the records, in one transaction.

        Raises a Conflict, and changes nothing, when anything is no longer as it was read, a name or an id was
        taken meanwhile, or no administrator would be left who can sign in though there is one now. With
        `setup_closed` an administrator is made: setup closes for ever, and that record is kept if it was open.
        """
