"""Number, chain and sign new records a few times a second, one process at a time (S-24).

This is not part of the transaction of a change, or every write of the service would wait for the chain's head.

The head says where the chain ends (audit/head.py). A log that ends elsewhere was changed. Sealing then continues,
because the service must keep recording, but after the place that the head names, so that the gap stays permanently; a
record and an entry in the head report it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import structlog
from msgspec.structs import replace

from gatehouse.audit.chain import SealSigner, is_authentic, link_after, seal_message, verified_predecessor
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.head import MAX_BREAKS, ChainBreak, ChainHead, HeadCodec, describe_break, head_matches_end
from gatehouse.audit.model import (
    GENESIS,
    AuditOrigin,
    AuditRecord,
    AuditStore,
    ChainEnd,
    HeadSwap,
    Seal,
    SealedMeanwhile,
)
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Conflict

log = structlog.get_logger(__name__)

BATCH: Final = 500
HIGHEST_PLACE: Final = 2**62  # the database counts up to 2**63
SERVICE_ORIGIN: Final = AuditOrigin(actor="service")


class Sealer:
    def __init__(
        self,
        *,
        store: AuditStore,
        key: SealSigner,
        head_codec: HeadCodec,
        recorder: Recorder,
        mac_key: bytes,
        clock: Clock,
    ) -> None:
        self._store = store
        self._key = key
        self._head_codec = head_codec
        self._recorder = recorder
        self._mac_key = mac_key
        self._clock = clock
        self._complete_at = clock.monotonic()  # when this process last found nothing left to seal

    @property
    def lag(self) -> float:
        """Seconds since this process last found nothing left to seal."""
        return self._clock.monotonic() - self._complete_at

    async def seal_all(self) -> int:
        """Seal until nothing is left, or until another process seals; return the number of sealed records.

        Each batch begins after the last one. What is committed meanwhile with an earlier time waits for the next run.
        """
        sealed = 0
        last: AuditRecord | None = None
        while True:
            end = await self._store.chain_end()
            records = await self._store.unsealed_records(BATCH, last)
            authentic = self._authentic(records)
            try:
                if authentic and not await self._seal(authentic, end):
                    break
            except (SealedMeanwhile, Conflict):
                if (await self._store.chain_end()).head == end.head:
                    log.exception("audit.sealing_blocked")
                    return sealed
                break
            sealed += len(authentic)
            if len(records) < BATCH:
                break
            last = records[-1]
        self._complete_at = self._clock.monotonic()
        return sealed

    def _authentic(self, records: Sequence[AuditRecord]) -> Sequence[AuditRecord]:
        """Return the authentic records.

        A record that was changed before it was sealed stays unsealed, and `audit verify` reports it. Any number of
        those does not stop the sealing of later records.
        """
        authentic = [record for record in records if is_authentic(record, self._mac_key)]
        if len(authentic) < len(records):
            refused = {record.record_id for record in records} - {record.record_id for record in authentic}
            log.error("audit.record_not_authentic", count=len(refused), record_id=min(refused))
        return authentic

    async def _seal(self, records: Sequence[AuditRecord], end: ChainEnd) -> bool:
        """Return False while another process seals."""
        head = self._head_codec.decode(end)
        broken = None
        if head is None or not head_matches_end(head, end):
            broken = await self._make_break(head, end)
            head = head_after_break(head, end, broken)
        break_record = None if broken is None else self._break_record(broken)
        chained = records if break_record is None else [break_record, *records]
        seal = self._sign_seal(head.place, link_after(head.link, head.place + 1, chained), len(chained))
        moved = msgspec.structs.replace(head, place=seal.place, link=seal.link, at=seal.at)
        appended = await self._store.append_to_chain(
            [record.record_id for record in records],
            seal,
            HeadSwap(before=end.head, after=self._head_codec.encode(moved)),
            break_record,
        )
        if appended and broken is not None:
            log.critical("audit.broken", reason=describe_break(broken))
        return appended

    async def _make_break(self, head: ChainHead | None, end: ChainEnd) -> ChainBreak:
        """Return what is wrong with the end of the log, and where to continue: after the head and every record."""
        place, link = (0, GENESIS) if head is None else (head.place, head.link)
        sealed = end.seal.place if end.seal else 0
        if (
            end.seal
            and sealed > place
            and await verified_predecessor(self._key, end.seal, end.previous, head) is not None
        ):
            link = end.seal.link
        beyond = max(place, sealed, end.last_place)
        if beyond < HIGHEST_PLACE:
            place = beyond
        return ChainBreak(
            at=self._clock.now(),
            expected=None if head is None else head.place,
            sealed=sealed,
            recorded=end.last_place,
            place=place,
            link=link,
        )

    def _break_record(self, broken: ChainBreak) -> AuditRecord:
        record = self._recorder.record(
            AuditEvent.LOG_BROKEN,
            SERVICE_ORIGIN,
            subject="installation",
            details={
                "expected": broken.expected,
                "sealed": broken.sealed,
                "recorded": broken.recorded,
                "place": broken.place,
            },
        )
        return replace(record, place=broken.place + 1)

    def _sign_seal(self, previous: int, link: bytes, count: int) -> Seal:
        seal = Seal(place=previous + count, at=self._clock.now(), link=link, kid="", signature=b"")
        kid, signature = self._key.sign(seal_message(seal, previous))
        return replace(seal, kid=kid, signature=signature)


def head_after_break(head: ChainHead | None, end: ChainEnd, broken: ChainBreak) -> ChainHead:
    """Return the head from which sealing continues, with the break in it."""
    if head is None:
        begins = max(end.first_place, 1) if end.first_place else broken.place + 1
        return ChainHead(
            place=broken.place, link=broken.link, at=broken.at, begins=begins, breaks=(broken,), broken=1
        )
    breaks = (*head.breaks, broken)[-MAX_BREAKS:]
    return msgspec.structs.replace(head, place=broken.place, link=broken.link, breaks=breaks, broken=head.broken + 1)
