"""Verify the whole chain and report where it is broken."""

from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from typing import Final

import msgspec
import structlog

from gatehouse.audit.chain import SealSigner, is_authentic, matches_commitment, next_link, verified_predecessor
from gatehouse.audit.head import (
    ChainHead,
    ExportedHead,
    HeadCodec,
    HeadExporter,
    missing_at_end_text,
    missing_text,
    problems_at_end,
)
from gatehouse.audit.model import GENESIS, AuditRecord, AuditStore, ChainEnd, Seal
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop

log = structlog.get_logger(__name__)

CHUNK_SIZE: Final = 1_000
LOWEST_PLACE: Final = -(2**63)


class VerificationResult(msgspec.Struct, frozen=True, kw_only=True):
    records: int
    seals: int
    unsealed: int
    first_place: int  # above 1 when retention has cut the beginning off
    head: str  # to be stored elsewhere: only that reveals that the whole database was replaced by an older one
    problems: tuple[str, ...]


class ChainWalk(msgspec.Struct, kw_only=True):
    """The position of the verification, and how much of it is certain."""

    place: int  # of the next record
    last: int  # of the records that are read; what a running service seals meanwhile is left out
    since: int  # the first record behind the last genuine seal
    link: bytes | None  # of the record before; None when one is missing
    links: dict[int, bytes]  # by place, for heads that were noted elsewhere
    is_whole: bool = True  # no record since is missing or changed
    checked: int = 0
    sealed: int = 0  # the place of the last seal that was checked
    seals: int = 0  # that were checked


class ChainVerifier:
    def __init__(
        self,
        *,
        store: AuditStore,
        mac_key: bytes,
        key: SealSigner,
        head_codec: HeadCodec,
        head_exporter: HeadExporter,
        progress: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._store = store
        self._mac_key = mac_key
        self._key = key
        self._head_codec = head_codec
        self._head_exporter = head_exporter
        self._progress = progress
        self._problems: list[str] = []
        self._links = {0: GENESIS}  # what is certain: the links that genuine seals and the head name, by place

    async def verify(
        self, exported: Sequence[ExportedHead] = (), *, ignore_breaks: bool = False
    ) -> VerificationResult:
        """Compare records, seals and head with each other, and heads that were noted elsewhere with them.

        Records and seals are read side by side, so that memory does not grow with the log.
        `ignore_breaks`: as if no break had been found before.
        """
        end = await self._store.chain_end()
        head = self._head_codec.decode(end)
        if head is not None and ignore_breaks:
            head = msgspec.structs.replace(head, breaks=(), broken=0)
        self._problems += problems_at_end(head, end)
        first = head.begins if head else end.first_place or 1
        walk = ChainWalk(place=first, since=first, last=await self._last_place(head, end), link=None, links={})
        walk.links = {0: GENESIS} | {
            chain_break.place: chain_break.link for chain_break in (head.breaks if head else ())
        }
        await self._walk(walk, head, end, {exported_head.place for exported_head in exported})
        self._compare_exported(exported, walk)
        return VerificationResult(
            records=walk.checked,
            seals=walk.seals,
            unsealed=await self._check_unsealed(),
            first_place=first,
            head=self._head_exporter.export(head) if head else "",
            problems=tuple(self._problems),
        )

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(self._problems)

    @property
    def links(self) -> dict[int, bytes]:
        return self._links

    def go_on(self, links: Mapping[int, bytes], problems: Sequence[str]) -> None:
        """Begin with what an earlier verifier of the same walk knew."""
        self._links, self._problems = dict(links), list(problems)

    async def begin(self) -> ChainWalk:
        """Return the beginning of the log, for `advance`."""
        end = await self._store.chain_end()
        head = self._head_codec.decode(end)
        first = head.begins if head else end.first_place or 1
        link = GENESIS if first == 1 else None
        return ChainWalk(place=first, since=first, last=first - 1, link=link, links={}, sealed=first - 1)

    async def advance(self, walk: ChainWalk, count: int) -> bool:
        """Verify up to this many records more, off the event loop; return whether the end was reached."""
        end = await self._store.chain_end()
        head = self._head_codec.decode(end)
        walk.last = head.place if head else end.last_place
        records = await self._store.records_from(walk.place, count)
        sealed = [record for record in records if (record.place or 0) <= walk.last]
        if sealed:
            last = sealed[-1].place or 0
            seals = await self._store.seals_from(walk.place, count)
            walk.sealed = await self._check_seals([seal for seal in seals if seal.place <= last], head, walk.sealed)
            await run_off_loop(OFF_LOOP_WEIGHT, self._check_records, sealed, head, walk)
            self._forget_links(walk)
        return len(sealed) < count

    def _check_records(self, records: Sequence[AuditRecord], head: ChainHead | None, walk: ChainWalk) -> None:
        for record in records:
            if record.place != walk.place:
                self._skip(record.place or 0, head, walk)
            self._check_link(record, walk)

    async def _check_seals(self, seals: Sequence[Seal], head: ChainHead | None, previous: int = 0) -> int:
        """Check the seals after the one at `previous`; return the place of the last."""
        if head is not None:
            self._links |= {chain_break.place: chain_break.link for chain_break in head.breaks} | {
                head.place: head.link
            }
        for seal in seals:
            signed = await verified_predecessor(self._key, seal, previous, head)
            if signed is None:
                self._problems.append(
                    f"the seal at record {seal.place} was changed, or a seal after record {previous} was deleted"
                )
            else:
                if signed != previous:
                    self._problems.append(f"the seals after record {previous} up to record {signed} are missing")
                self._links[seal.place] = seal.link
            previous = seal.place
        return previous

    async def _walk(
        self, walk: ChainWalk, head: ChainHead | None, end: ChainEnd, exported_places: Container[int]
    ) -> None:
        newest = end.seal.place if end.seal else 0  # what a running service seals meanwhile is left out
        seals = self._seals(LOWEST_PLACE, newest)
        waiting = await anext(seals, None)

        async def check_seals_up_to(place: int) -> None:
            nonlocal waiting
            while waiting is not None and waiting.place <= place:
                walk.sealed = await self._check_seals([waiting], head, walk.sealed)
                walk.seals += 1
                if waiting.place in exported_places and waiting.place in self._links:
                    walk.links[waiting.place] = self._links[waiting.place]
                if waiting.place < walk.place - 1:
                    self._links.pop(waiting.place, None)
                waiting = await anext(seals, None)

        await check_seals_up_to(walk.place - 1)
        walk.link = self._links.get(walk.place - 1)
        while walk.place <= walk.last and (chunk := await self._store.records_from(walk.place, CHUNK_SIZE)):
            known = [record for record in chunk if (record.place or 0) <= walk.last]
            if known:
                await check_seals_up_to(known[-1].place or 0)
            await self._check_chunk(known, walk, exported_places)
            if len(known) < len(chunk):
                break
            self._progress(walk.checked)
            self._forget_links(walk)
        await check_seals_up_to(newest)
        problem = missing_at_end_text(walk.place, walk.last)
        if walk.place <= walk.last and problem not in self._problems:
            self._problems.append(problem)

    async def _check_chunk(
        self, records: Sequence[AuditRecord], walk: ChainWalk, exported_places: Container[int]
    ) -> None:
        for record in records:
            place = record.place or 0
            if place != walk.place:
                await self._skip_to(place, walk)
            self._check_link(record, walk)
            if place in exported_places and walk.link is not None:
                walk.links[place] = walk.link

    def _forget_links(self, walk: ChainWalk) -> None:
        self._links = {place: link for place, link in self._links.items() if place >= walk.place - 1}

    async def _last_place(self, head: ChainHead | None, end: ChainEnd) -> int:
        """Return where the log ends: at the head, or at a genuine seal behind it if the head is an older one."""
        last = previous = head.place if head else end.last_place
        async for seal in self._seals(last + 1, end.seal.place if end.seal else 0):
            if await verified_predecessor(self._key, seal, previous, head) is not None:
                last = seal.place
            previous = seal.place
        return last

    async def _skip_to(self, place: int, walk: ChainWalk) -> None:
        """Continue at the next existing record.

        Those before it are missing, unless retention deleted them meanwhile.
        """
        self._skip(place, self._head_codec.decode(await self._store.chain_end()), walk)

    def _skip(self, place: int, head: ChainHead | None, walk: ChainWalk) -> None:
        if head is None or head.begins < place:
            self._problems.append(missing_text(walk.place, place - 1))
        walk.place, walk.since, walk.link = place, place, self._links.get(place - 1)

    def _check_link(self, record: AuditRecord, walk: ChainWalk) -> None:
        place = walk.place
        if not self._check_record(record, f"record {place}"):
            walk.is_whole = False
        walk.link = None if walk.link is None else next_link(walk.link, place, record)
        certain = self._links.get(place)
        if certain is not None:
            if walk.link not in (None, certain) and walk.is_whole:
                self._problems.append(
                    f"the chain breaks between records {walk.since} and {place}: records were swapped or replaced"
                )
            walk.link, walk.since, walk.is_whole = certain, place + 1, True  # a break is reported once
        walk.place = place + 1
        walk.checked += 1

    def _check_record(self, record: AuditRecord, where: str) -> bool:
        """False for a record whose chained part was changed."""
        if not is_authentic(record, self._mac_key):
            self._problems.append(f"{where} ({record.record_id}) was changed")
            return False
        if not matches_commitment(record):
            self._problems.append(f"{where} ({record.record_id}): its personal part was changed")
        return True

    async def _check_unsealed(self) -> int:
        unsealed = await self._store.unsealed_records(CHUNK_SIZE)
        for record in unsealed:
            self._check_record(record, "not sealed yet")
        return len(unsealed)

    def _compare_exported(self, exported: Sequence[ExportedHead], walk: ChainWalk) -> None:
        agreed = 0
        for head in exported:
            link = self._links.get(head.place) or walk.links.get(head.place)
            if not head.authentic:
                self._problems.append(f"this head was not created by this installation, or was changed: {head.text}")
            elif head.place > walk.last:
                self._problems.append(
                    f"the log ends at record {walk.last}; the stored head is {head.place}: the end was cut off, "
                    "or an older copy or backup was restored"
                )
            elif link is None:
                self._problems.append(f"the stored head {head.place} has no matching seal in the log")
            elif link != head.link:
                self._problems.append(
                    f"record {head.place} does not match the stored head: the log was replaced after record "
                    f"{agreed}, for example by restoring an older copy or backup"
                )
            else:
                agreed = head.place

    async def _seals(self, first: int, last: int) -> AsyncIterator[Seal]:
        """Yield the seals from one place up to another, reading a chunk at a time."""
        while first <= last and (chunk := await self._store.seals_from(first, CHUNK_SIZE)):
            for seal in chunk:
                if seal.place > last:
                    return
                yield seal
            first = chunk[-1].place + 1
