"""What the audit log needs kept. Records themselves are inserted by the verb whose change they tell of."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatehouse.audit.model import Counted, Record, Refusal, Seal, Tallied


class AuditStore(Protocol):
    async def unsealed(self, limit: int) -> Sequence[Record]:
        """The oldest records that have no place in the chain yet."""

    async def newest_seal(self) -> Seal | None:
        """The head of the chain, or None when nothing was ever sealed."""

    async def append(self, record_ids: Sequence[str], seal: Seal) -> None:
        """Give the records the places that end at the seal's, and keep the seal, all or nothing.

        Raises SealedMeanwhile, and changes nothing, when any of them has a place by now or a place is taken.
        """

    async def refuse(self, refusal: Refusal, kept: int) -> None:
        """Keep the refusal, and only the newest `kept` of them."""

    async def find(self, record_id: str) -> Record | Refusal | None:
        """Look up a record by the id its caller was shown."""

    async def records_from(self, place: int, limit: int) -> Sequence[Record]:
        """Sealed records in chain order, from that place on."""

    async def seals_from(self, place: int, limit: int) -> Sequence[Seal]:
        """Seals in chain order, from that place on."""

    async def newest(self, limit: int, subject: str, event: str) -> Sequence[Record]:
        """The newest records first; an empty subject or event stands for any."""

    async def erase_personal(self, subject: str, record: Record) -> int:
        """Delete the personal part of every record about the subject, and keep `record`; returns how many."""

    async def forget_before(self, at: int) -> int:
        """Delete whole sealed batches that ended before that time; seals stay, so the rest still verifies."""


class TallyStore(Protocol):
    async def add(self, amounts: Mapping[tuple[int, Counted], int]) -> None:
        """Add to what is counted, by hour and kind."""

    async def since(self, hour: int) -> Sequence[Tallied]:
        """What was counted from that hour on, oldest first."""
