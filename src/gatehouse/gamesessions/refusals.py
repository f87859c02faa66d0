"""Records behind error IDs (interface §4.3): violations, blocks, and failed sessions."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from gatehouse.accounts.bans.model import UserBan
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord, Details, Refusal
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.refusals import RefusalLog
from gatehouse.gamesessions.errors import TooEarly, Violation
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256

MAX_SUBJECT_LENGTH: Final = 64  # characters
BANNED_FROM: Final = "banned_from"  # of details: `application 50001`, `project mind_games` or `installation`
GUEST: Final = "guest"  # of details: the banned one, if it is not the actor
RECORD_CACHE_SECONDS: Final = 3_600.0  # seconds in which the same refusal is answered with the same record
RECORD_CACHE_SIZE: Final = 20_000  # entries of one size, about 6 MB in all


class RefusalRecordCache:
    """Caches record ids by refusal, so that a client in a loop stores one record an hour.

    Each process has its own. An id is returned again only after its record was committed. An entry that is evicted
    early costs one more record, and the number of stored records is limited.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cached: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        self._storing: dict[bytes, asyncio.Task[str]] = {}

    async def record_id_for(self, refused: str, keep: Callable[[], Awaitable[str]]) -> str:
        key = sha256(refused)
        ends_at, record_id = self._cached.get(key, (0.0, ""))
        if self._clock.monotonic() < ends_at:
            return record_id
        storing = self._storing.get(key)
        if storing is None:
            storing = self._storing[key] = asyncio.create_task(self._store(key, keep), name="game-refusal")
        return await asyncio.shield(storing)  # other requests may wait for it too

    async def _store(self, key: bytes, keep: Callable[[], Awaitable[str]]) -> str:
        try:
            record_id = await keep()
        finally:
            del self._storing[key]
        self._cached[key] = (self._clock.monotonic() + RECORD_CACHE_SECONDS, record_id)
        self._cached.move_to_end(key)
        if len(self._cached) > RECORD_CACHE_SIZE:
            self._cached.popitem(last=False)
        return record_id

    def __len__(self) -> int:
        return len(self._cached)


class GameRefusals:
    def __init__(self, *, refusals: RefusalLog, recorder: Recorder, max_refusals: int, clock: Clock) -> None:
        self._refusals = refusals
        self._recorder = recorder
        self._cache = RefusalRecordCache(clock)
        self.max_refusals = max_refusals  # the number of possible refusals

    async def violation(self, gsid: str, origin: AuditOrigin, reason: str) -> Violation:
        """Record a violation; the session name from the wire is shortened for storage."""
        return Violation(await self._add_violation(gsid, origin, reason), reason)

    async def unknown_session(self, gsid: str, origin: AuditOrigin, source: str) -> Violation:
        """Record an unknown session; one record an hour per source, whatever sessions it names."""
        reason = "no such session"
        keep = partial(self._add_violation, gsid, origin, reason)
        return Violation(await self._cache.record_id_for(f"unknown {source}", keep), reason)

    async def already_delivered(self, gsid: str, origin: AuditOrigin) -> Violation:
        """Record a poll after the delivery; one record an hour per session."""
        reason = "the answer was already delivered"
        keep = partial(self._add_violation, gsid, origin, reason)
        return Violation(await self._cache.record_id_for(f"delivered {gsid}", keep), reason)

    async def _add_violation(self, gsid: str, origin: AuditOrigin, reason: str) -> str:
        printable = "".join(filter(str.isprintable, gsid[:MAX_SUBJECT_LENGTH]))
        return await self._refusals.add(AuditEvent.GAME_VIOLATION, origin, reason=reason, subject=printable)

    async def polled_too_early(self, gsid: str, origin: AuditOrigin, seconds: int) -> TooEarly:
        reason = f"polled before the delay was over; blocked for {seconds} s"
        record_id = await self._refusals.add(AuditEvent.GAME_BLOCKED, origin, reason=reason, subject=gsid)
        return TooEarly(seconds, record_id)

    def end_refusal(
        self,
        gsid: str,
        origin: AuditOrigin,
        reason: str,
        *,
        app_id: int = 0,
        ban: UserBan | None = None,
        guest_id: str = "",
    ) -> Refusal:
        """Build the record that is stored together with the end of a session.

        `ban`: if it is the reason, of the actor or, with `guest_id`, of the guest. Pages add the names.
        """
        details: Details = {
            **({"app_id": app_id} if app_id else {}),
            **({} if ban is None else {BANNED_FROM: ban.place, "ban_id": ban.ban_id}),
            **({GUEST: guest_id} if guest_id else {}),
        }
        event = AuditEvent.GAME_ENDED.value
        return self._recorder.refusal(event, origin, reason=reason, subject=gsid, details=details)

    def return_record(self, taken: AuditRecord) -> AuditRecord:
        """Build the record that is stored when a taken answer is returned unsent."""
        origin = AuditOrigin(actor=taken.actor)
        details = {"record": taken.record_id}
        return self._recorder.record(AuditEvent.GAME_RETURNED, origin, subject=taken.subject, details=details)
