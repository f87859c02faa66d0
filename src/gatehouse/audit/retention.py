"""Delete old records, and store in the head where the log begins now: any other cut is detected."""

from typing import Final

import msgspec

from gatehouse.audit.chain import SealSigner, verified_predecessor
from gatehouse.audit.head import ChainHead, HeadCodec
from gatehouse.audit.model import AuditStore, HeadSwap, SealedMeanwhile
from gatehouse.audit.sealer import log

MAX_TRIES: Final = 5  # sealers move the head too


class Retention:
    def __init__(self, *, store: AuditStore, key: SealSigner, head_codec: HeadCodec) -> None:
        self._store = store
        self._key = key
        self._head_codec = head_codec

    async def delete_before(self, at: int) -> int:
        """Delete whole sealed batches that ended before that time; return the number of records."""
        forgotten = lost = 0
        while lost < MAX_TRIES:
            try:
                some = await self._delete_some(at)
            except SealedMeanwhile:
                lost += 1
                continue
            if some is None:
                break
            forgotten, lost = forgotten + some, 0
        return forgotten

    async def _delete_some(self, at: int) -> int | None:
        end = await self._store.chain_end()
        head = self._head_codec.decode(end)
        last = None if head is None else await self._last_to_delete(head, at)
        if head is None or last is None:
            return None
        moved = self._head_codec.encode(msgspec.structs.replace(head, begins=last + 1))
        return await self._store.delete_up_to(last, HeadSwap(before=end.head, after=moved))

    async def _last_to_delete(self, head: ChainHead, at: int) -> int | None:
        """Return the place of the last genuine seal to delete; the time of any other seal proves nothing."""
        begins = head.begins
        while oldest := await self._store.seal_to_delete(begins, at):
            seal, previous = oldest
            if await verified_predecessor(self._key, seal, previous, head) is not None:
                return seal.place
            log.error("audit.seal_not_genuine", place=seal.place)
            begins = seal.place + 1
        return None
