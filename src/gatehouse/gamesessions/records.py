"""What stands behind an error id (interface §4.3): violations, blocks, and sessions that came to nothing."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin, Record, Refusal
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.refusals import Refusals
from gatehouse.gamesessions.errors import TooEarly, Violation
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256

SHOWN_MOST: Final = 64  # characters
REPEATED_FOR: Final = 3_600.0  # seconds in which the same refusal is answered with the same record
REPEATED_MOST: Final = 20_000  # entries of one size, about 6 MB in all


class RepeatedRecords:
    """Ids of records by what was refused, so that asking in a loop stores one record an hour.

    Per process. An id is given out again only after its record was committed. What is dropped early because there
    are too many costs one more record, and those are bounded where they are stored.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        self._storing: dict[bytes, asyncio.Task[str]] = {}

    async def record_id(self, refused: str, keep: Callable[[], Awaitable[str]]) -> str:
        key = sha256(refused)
        ends_at, record_id = self._known.get(key, (0.0, ""))
        if self._clock.monotonic() < ends_at:
            return record_id
        storing = self._storing.get(key)
        if storing is None:
            storing = self._storing[key] = asyncio.create_task(self._store(key, keep), name="game-refusal")
        return await asyncio.shield(storing)  # others may wait for it too

    async def _store(self, key: bytes, keep: Callable[[], Awaitable[str]]) -> str:
        try:
            record_id = await keep()
        finally:
            del self._storing[key]
        self._known[key] = (self._clock.monotonic() + REPEATED_FOR, record_id)
        self._known.move_to_end(key)
        if len(self._known) > REPEATED_MOST:
            self._known.popitem(last=False)
        return record_id

    def __len__(self) -> int:
        return len(self._known)


class GameRecords:
    def __init__(self, *, refusals: Refusals, recorder: Recorder, kept: int, clock: Clock) -> None:
        self._refusals = refusals
        self._recorder = recorder
        self._repeated = RepeatedRecords(clock)
        self.kept = kept  # how many refusals there may be

    async def violation(self, gsid: str, origin: Origin, reason: str) -> Violation:
        """Whatever a stranger calls a session, little of it is kept."""
        return Violation(await self._keep(gsid, origin, reason), reason)

    async def unknown(self, gsid: str, origin: Origin, source: str) -> Violation:
        """No such session: one record an hour for each source, whatever sessions it names."""
        reason = "no such session"
        keep = partial(self._keep, gsid, origin, reason)
        return Violation(await self._repeated.record_id(f"unknown {source}", keep), reason)

    async def delivered(self, gsid: str, origin: Origin) -> Violation:
        """The answer was given before: one record an hour for each session."""
        reason = "the answer was already delivered"
        keep = partial(self._keep, gsid, origin, reason)
        return Violation(await self._repeated.record_id(f"delivered {gsid}", keep), reason)

    async def _keep(self, gsid: str, origin: Origin, reason: str) -> str:
        shown = "".join(filter(str.isprintable, gsid[:SHOWN_MOST]))
        return await self._refusals.keep(Event.GAME_VIOLATION, origin, reason=reason, subject=shown)

    async def blocked(self, gsid: str, origin: Origin, seconds: int) -> TooEarly:
        reason = f"polled before the delay was over; blocked for {seconds} s"
        record_id = await self._refusals.keep(Event.GAME_BLOCKED, origin, reason=reason, subject=gsid)
        return TooEarly(seconds, record_id)

    def ended(self, gsid: str, origin: Origin, reason: str) -> Refusal:
        """Stored together with the end it explains."""
        return self._recorder.refusal(Event.GAME_ENDED.value, origin, reason=reason, subject=gsid)

    def returned(self, taken: Record) -> Record:
        """Stored when an answer that was taken, with that record, is given back unsent."""
        origin = Origin(actor=taken.actor)
        details = {"record": taken.record_id}
        return self._recorder.record(Event.GAME_RETURNED, origin, subject=taken.subject, details=details)
