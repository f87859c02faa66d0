"""What the audit log needs kept. Records themselves are inserted by the verb whose change they tell of."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatehouse.audit.model import AuditRecord, ChainEnd, HeadSwap, HourlyTally, Refusal, Seal, TallyKind


class AuditStore(Protocol):
    async def unsealed_records(self, limit: int, after: AuditRecord | None = None) -> Sequence[AuditRecord]:
        """The oldest records that have no place in the chain yet, or those behind `after`."""

    async def chain_end(self) -> ChainEnd:
        """The head, and where seals and records end."""

    async def append_to_chain(
        self, record_ids: Sequence[str], seal: Seal, head: HeadSwap, break_record: AuditRecord | None = None
    ) -> None:
        """Give the records the places that end at the seal's, keep the seal and move the head, all or nothing.

        `break_record` is inserted with the place it has, before the others. Raises SealedMeanwhile, and changes
        nothing, when the head was moved meanwhile, one of the records has a place by now or a place is taken.
        """

    async def swap_head(self, head: HeadSwap) -> None:
        """Raises SealedMeanwhile when the head was moved meanwhile."""

    async def add_refusal(self, refusal: Refusal, kept: int) -> None:
        """Keep the refusal, and only the newest `kept` of them."""

    async def find_record(self, record_id: str) -> AuditRecord | Refusal | None:
        """Look up a record by the id its caller was shown."""

    async def records_from(self, place: int, limit: int) -> Sequence[AuditRecord]:
        """Sealed records in chain order, from that place on."""

    async def seals_from(self, place: int, limit: int) -> Sequence[Seal]:
        """Seals in chain order, from that place on."""

    async def newest_records(self, limit: int, subject: str, event: str) -> Sequence[AuditRecord]:
        """The newest records first; an empty subject or event stands for any."""

    async def erase_personal(self, subject: str, record: AuditRecord) -> int:
        """Delete the personal part of every record about the subject, and keep `record`; returns how many."""

    async def seal_to_delete(self, begins: int, at: int) -> tuple[Seal, int] | None:
        """A seal made before that time, from `begins` on, and the place of the seal before it; not far apart."""

    async def delete_up_to(self, place: int, head: HeadSwap) -> int:
        """Delete the records up to that place and move the head; seals stay, so the rest still verifies.

        Raises SealedMeanwhile when the head was moved meanwhile.
        """


class TallyStore(Protocol):
    async def add_counts(self, amounts: Mapping[tuple[int, TallyKind], int]) -> None:
        """Add to what is counted, by hour and kind."""

    async def counts_since(self, hour: int) -> Sequence[HourlyTally]:
        """What was counted from that hour on, oldest first."""
