"""Reads the whole chain again and says where it does not hold."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gatehouse.audit.chain import is_authentic, keeps_its_commitment, next_link, seal_message
from gatehouse.audit.model import GENESIS, Record, Seal
from gatehouse.audit.store import AuditStore

CHUNK: Final = 1_000

VerifySeal = Callable[[str, bytes, bytes], Awaitable[bool]]  # kid, message, signature


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    records: int
    seals: int
    unsealed: int
    first_place: int  # above 1 when retention has cut the beginning off
    head: str  # to be noted elsewhere: a chain cut at its end is only seen by comparing heads
    problems: tuple[str, ...]


class Verification:
    def __init__(
        self,
        *,
        store: AuditStore,
        mac_key: bytes,
        verify_seal: VerifySeal,
        progress: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._store = store
        self._mac_key = mac_key
        self._verify_seal = verify_seal
        self._progress = progress
        self._problems: list[str] = []

    async def verify(self) -> Verdict:
        seals = await self._all_seals()
        first = await self._store.records_from(1, 1)
        place, link = self._start(seals, first[0].place or 1 if first else 1)
        checked, link, last = await self._walk(place, link, {seal.place: seal for seal in seals})
        if seals and last != seals[-1].place:
            self._problems.append(f"records {last + 1} to {seals[-1].place} are missing at the end")
        unsealed = await self._store.unsealed(CHUNK)
        for record in unsealed:
            self._check_record(record, "not sealed yet")
        return Verdict(
            records=checked,
            seals=len(seals),
            unsealed=len(unsealed),
            first_place=place,
            head=link.hex(),
            problems=tuple(self._problems),
        )

    def _start(self, seals: Sequence[Seal], first_place: int) -> tuple[int, bytes]:
        """Where the records begin, and the link before it: from the seal that retention left standing."""
        if first_place == 1:
            return 1, GENESIS
        before = next((seal for seal in seals if seal.place == first_place - 1), None)
        if before is None:
            self._problems.append(f"records before {first_place} are missing")
            return first_place, GENESIS
        return first_place, before.link

    async def _walk(self, place: int, link: bytes, seals: dict[int, Seal]) -> tuple[int, bytes, int]:
        checked = 0
        last = max(seals, default=0)
        while chunk := await self._store.records_from(place, CHUNK):
            for record in chunk:
                if (record.place or 0) > last:  # sealed by a running service since the seals were read
                    return checked, link, place - 1
                found = record.place or 0
                if found != place:
                    self._problems.append(f"record {place} is missing, the next one found is {found}")
                self._check_record(record, f"record {found}")
                link = next_link(link, found, record)
                if found in seals:
                    await self._check_seal(seals[found], link)
                    link = seals[found].link  # a break is reported once, not at every later seal
                place = found + 1
                checked += 1
            self._progress(checked)
        return checked, link, place - 1

    def _check_record(self, record: Record, where: str) -> None:
        if not is_authentic(record, self._mac_key):
            self._problems.append(f"{where} ({record.record_id}) was changed")
        elif not keeps_its_commitment(record):
            self._problems.append(f"{where} ({record.record_id}): its personal part was changed")

    async def _check_seal(self, seal: Seal, link: bytes) -> None:
        if seal.link != link:
            self._problems.append(f"the chain breaks at or before record {seal.place}")
        if not await self._verify_seal(seal.kid, seal_message(seal.place, seal.link), seal.signature):
            self._problems.append(f"the seal at record {seal.place} is not ours")

    async def _all_seals(self) -> list[Seal]:
        seals: list[Seal] = []
        while chunk := await self._store.seals_from(seals[-1].place + 1 if seals else 1, CHUNK):
            seals.extend(chunk)
        return seals
