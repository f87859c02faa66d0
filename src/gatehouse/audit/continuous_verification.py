"""Verify the log all the time, some records at a time, so that the console can say how far it is verified.

One process of the installation does it, and stores how far it came: others and later ones go on from there. The
position is sealed under the master key, so that write access to the database is not enough to move it.
"""

import asyncio
import base64
import binascii
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gatehouse.audit.head import HeadCodec
from gatehouse.audit.model import AuditStore
from gatehouse.audit.verification import ChainVerifier, ChainWalk, log
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.ids import new_node_id
from gatehouse.kernel.sealing import SecretSealer

SLICE_RECORDS: Final = 200  # read and checked at a time
RECORDS_PER_RUN: Final = 50_000  # every five seconds: more than are sealed in them
RECORDS_FOR_A_PAGE: Final = 1_000  # that a page waits for
VERIFY_AGAIN_SECONDS: Final = 24 * 3600  # from the beginning: records may be changed after they were verified
LEASE_SECONDS: Final = 30  # after which another process goes on, if the one that verifies has ended
MAX_PROBLEMS: Final = 20
POSITION_PURPOSE: Final = "audit_verified"  # what the sealed position is bound to


class VerifiedLog(msgspec.Struct, frozen=True, kw_only=True):
    records: int = 0
    at: int = 0  # when it was verified; 0 before the first time
    problems: tuple[str, ...] = ()


class VerifiedPosition(msgspec.Struct, frozen=True, kw_only=True):
    """How far the log is verified, and who goes on."""

    began_at: int
    walk: ChainWalk
    links: dict[int, bytes]  # those of the verifier that are certain
    problems: tuple[str, ...] = ()  # of this walk
    ended: bool = False  # the walk has reached the end of the log once
    result: VerifiedLog = VerifiedLog()
    holder: str = ""
    held_until: int = 0


DECODER: Final = msgspec.json.Decoder(VerifiedPosition)


class PositionCodec(Struct, eq=False):
    """Seals the position for the installation table and opens it again."""

    sealing: SecretSealer

    def encode(self, position: VerifiedPosition) -> str:
        sealed = self.sealing.seal(msgspec.json.encode(position), purpose=POSITION_PURPOSE)
        return base64.b64encode(sealed).decode()

    def decode(self, stored: str | None) -> VerifiedPosition | None:
        """Return the position; None when there is none or it does not open: then the log is verified again."""
        if stored is None:
            return None
        try:
            plain = self.sealing.try_open(base64.b64decode(stored, validate=True), purpose=POSITION_PURPOSE)
            return None if plain is None else DECODER.decode(plain)
        except (binascii.Error, msgspec.DecodeError):
            return None


class ContinuousVerifier:
    def __init__(
        self,
        *,
        store: AuditStore,
        head_codec: HeadCodec,
        position_codec: PositionCodec,
        make_verifier: Callable[[], ChainVerifier],
        clock: Clock,
    ) -> None:
        self._store = store
        self._head_codec = head_codec
        self._position_codec = position_codec
        self._make_verifier = make_verifier
        self._clock = clock
        self._name = new_node_id()
        self._lock = asyncio.Lock()
        self.result = VerifiedLog()

    async def run_once(self, records: int = RECORDS_PER_RUN) -> None:
        """Verify what was sealed since, or some more of a long log; once a day all of it again."""
        if self._lock.locked():
            return
        async with self._lock:
            end = await self._store.chain_end()
            head = self._head_codec.decode(end)  # reads new master keys, too
            stored = await self._store.verified_position()
            position = self._position_codec.decode(stored)
            now = self._clock.now()
            if position is not None:
                self._take_over(position.result)
                if position.held_until > now and position.holder != self._name:
                    return
                if is_at_end(position, head.place if head else end.last_place, now):
                    self.result = replace(position.result, at=now)
                    return
            await self._verify_more(stored, position, records)

    async def _verify_more(self, stored: str | None, position: VerifiedPosition | None, records: int) -> None:
        now = self._clock.now()
        verifier = self._make_verifier()
        if position is None or (position.ended and now >= position.began_at + VERIFY_AGAIN_SECONDS):
            result = VerifiedLog() if position is None else position.result
            position = VerifiedPosition(
                began_at=now, walk=await verifier.begin(), links=verifier.links, result=result
            )
        verifier.go_on(position.links, position.problems)
        claimed = self._position_codec.encode(replace(position, holder=self._name, held_until=now + LEASE_SECONDS))
        if not await self._store.swap_verified_position(stored, claimed):
            return  # another process was first
        walk, ended = position.walk, False
        for _ in range(records // SLICE_RECORDS):
            ended = await verifier.advance(walk, SLICE_RECORDS) or len(verifier.problems) >= MAX_PROBLEMS
            if ended or self._clock.now() >= now + LEASE_SECONDS // 2:
                break
        verified = VerifiedPosition(
            began_at=position.began_at,
            walk=walk,
            links=verifier.links,
            problems=verifier.problems[:MAX_PROBLEMS],
            ended=position.ended or ended,
            result=self._result(position.result, verifier.problems[:MAX_PROBLEMS], walk.checked, ended=ended),
        )
        if await self._store.swap_verified_position(claimed, self._position_codec.encode(verified)):
            self._take_over(verified.result)

    def _result(self, earlier: VerifiedLog, problems: tuple[str, ...], checked: int, *, ended: bool) -> VerifiedLog:
        """The earlier result counts until the log was verified again as far."""
        if ended or checked >= earlier.records:
            return VerifiedLog(records=checked, at=self._clock.now(), problems=problems)
        return replace(earlier, problems=tuple(dict.fromkeys((*earlier.problems, *problems))))

    def _take_over(self, result: VerifiedLog) -> None:
        for problem in result.problems:
            if problem not in self.result.problems:
                log.critical("audit.broken", reason=problem)
        self.result = result


def is_at_end(position: VerifiedPosition, last: int, now: int) -> bool:
    """Whether nothing was sealed since, and the log need not be verified again yet."""
    is_recent = now < position.began_at + VERIFY_AGAIN_SECONDS
    return position.ended and is_recent and (position.walk.place > last or len(position.problems) >= MAX_PROBLEMS)
