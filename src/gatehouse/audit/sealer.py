"""Numbers, chains and signs what was recorded, a few times a second, one process at a time (S-24).

Not in the transaction of the change: then every write of the service would queue on the chain's head.
"""

from typing import Final, Protocol

import structlog

from gatehouse.audit.chain import head_after, is_authentic, seal_message
from gatehouse.audit.errors import SealedMeanwhile
from gatehouse.audit.model import GENESIS, Record, Seal
from gatehouse.audit.store import AuditStore
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Conflict

log = structlog.get_logger(__name__)

BATCH: Final = 500


class SealSigner(Protocol):
    """The audit key of the keys room, handed in: this room knows no keys."""

    def sign(self, message: bytes) -> tuple[str, bytes]:
        """The key's id and its signature."""


class Sealer:
    def __init__(self, *, store: AuditStore, signer: SealSigner, mac_key: bytes, clock: Clock) -> None:
        self._store = store
        self._signer = signer
        self._mac_key = mac_key
        self._clock = clock

    async def seal_all(self) -> int:
        """Seal until nothing is left; how many records got a place. Another sealer's win is no error."""
        sealed = 0
        while True:
            try:
                count = await self._seal_batch()
            except (SealedMeanwhile, Conflict):
                return sealed
            sealed += count
            if count < BATCH:
                return sealed

    async def _seal_batch(self) -> int:
        head = await self._store.newest_seal()  # before the records: an older head only loses the race
        records = [record for record in await self._store.unsealed(BATCH) if self._may_enter(record)]
        if not records:
            return 0
        place, link = (head.place, head.link) if head else (0, GENESIS)
        await self._store.append(
            [record.record_id for record in records],
            self._seal(place + len(records), head_after(link, place + 1, records)),
        )
        return len(records)

    def _may_enter(self, record: Record) -> bool:
        """A record changed before it was sealed stays outside, where `audit verify` names it."""
        authentic = is_authentic(record, self._mac_key)
        if not authentic:
            log.error("audit.record_not_authentic", record_id=record.record_id)
        return authentic

    def _seal(self, place: int, link: bytes) -> Seal:
        kid, signature = self._signer.sign(seal_message(place, link))
        return Seal(place=place, at=self._clock.now(), link=link, kid=kid, signature=signature)
