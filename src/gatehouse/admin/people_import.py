"""Accounts of other systems, imported by an administrator: a plan first, then the same again for real (R10)."""

import io
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gatehouse.accounts.importing.files import open_import_file
from gatehouse.accounts.importing.importer import Importer, ImportJob, ImportTotals
from gatehouse.accounts.importing.model import EmailState, ImportFormat, RefusedRow
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation

MAX_LISTED: Final = 1_000  # refused rows of a result; all are counted


class ImportResult(Struct, frozen=True, kw_only=True):
    import_id: str
    totals: ImportTotals
    refused: Sequence[RefusedRow]  # the first of them


class PeopleImport:
    def __init__(self, importer: Importer) -> None:
        self._importer = importer

    async def run(
        self,
        actor: Actor,
        content: bytes,
        source: ImportFormat,
        *,
        dry_run: bool,
        import_id: str = "",
        emails: EmailState | None = None,
    ) -> ImportResult:
        """Import what the content lists, or only say what would be imported. Raises BadImportFile and BadAccount."""
        require_operation(actor.rights, Operation.ADMINISTER)
        opened = await run_off_loop(OFF_LOOP_WEIGHT, open_import_file, io.BytesIO(content), source)
        job = ImportJob(
            source=source,
            import_id=import_id or opened.import_id,
            origin=actor.origin,
            dry_run=dry_run,
            emails=opened.email_state(emails),
        )
        refused: list[RefusedRow] = []

        def keep_first(row: RefusedRow) -> None:
            if len(refused) < MAX_LISTED:
                refused.append(row)

        totals = await self._importer.run(opened.rows, job, report=keep_first)
        return ImportResult(import_id=job.import_id, totals=totals, refused=refused)
