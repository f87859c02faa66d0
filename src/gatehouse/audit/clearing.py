"""Clears breaks that a node found because it lacked the master key of the head, while nothing was missing.

Such a break looks like a deleted head. So the whole log is verified first, as if there had been none: every place has
its record, every link and every seal is genuine. What that cannot show is an end that was cut off together with the
head; a head that was stored elsewhere can.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.head import ChainHead, ExportedHead, HeadCodec, describe_break
from gatehouse.audit.model import AuditOrigin, AuditStore, HeadSwap, SealedMeanwhile
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.verification import ChainVerifier
from gatehouse.kernel.errors import Conflict

MAX_TRIES: Final = 5  # sealers move the head too
MAX_RECORDS: Final = 10_000  # records of breaks


class LogNotWhole(Conflict):
    """Something else is wrong with the log; nothing was changed."""

    public = "The audit log is damaged."

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class BreakClearing(Struct, kw_only=True, eq=False):
    store: AuditStore
    head_codec: HeadCodec
    recorder: Recorder
    make_verifier: Callable[[], ChainVerifier]

    async def clear(self, exported: Sequence[ExportedHead], origin: AuditOrigin) -> int:
        """Clear all breaks and return their number. Raises LogNotWhole."""
        for _ in range(MAX_TRIES):
            end = await self.store.chain_end()
            head = self.head_codec.decode(end)
            if head is not None and not head.broken:
                return 0
            await self._refuse_damage(head, exported)
            if head is None:
                break
            cleared = msgspec.structs.replace(head, breaks=(), broken=0)
            entry = self.recorder.record(
                AuditEvent.LOG_CLEARED, origin, subject="installation", details={"breaks": head.broken}
            )
            try:
                await self.store.clear_breaks(HeadSwap(before=end.head, after=self.head_codec.encode(cleared)), entry)
            except SealedMeanwhile:
                continue
            return head.broken
        raise SealedMeanwhile

    async def _refuse_damage(self, head: ChainHead | None, exported: Sequence[ExportedHead]) -> None:
        problems = [
            describe_break(chain_break)
            for chain_break in (head.breaks if head else ())
            if chain_break.expected is not None or not chain_break.sealed == chain_break.recorded == chain_break.place
        ]
        for record in await self.store.newest_records(MAX_RECORDS, "", AuditEvent.LOG_BROKEN):
            places = [record.details.get(name) for name in ("sealed", "recorded", "place")]
            if record.details.get("expected") is not None or len(set(places)) > 1:
                problems.append(f"record {record.place} reports records that were cut off")
        problems += (await self.make_verifier().verify(exported, ignore_breaks=True)).problems
        if problems:
            raise LogNotWhole(problems)
