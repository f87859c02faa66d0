"""What stands behind an error id (interface §4.3): violations, blocks, and sessions that came to nothing."""

from typing import Final

from gatehouse.audit.events import Event
from gatehouse.audit.model import Origin, Refusal
from gatehouse.audit.recorder import Recorder
from gatehouse.audit.refusals import Refusals
from gatehouse.gamesessions.errors import TooEarly, Violation

SHOWN_MOST: Final = 64  # characters


class GameRecords:
    def __init__(self, *, refusals: Refusals, recorder: Recorder, kept: int) -> None:
        self._refusals = refusals
        self._recorder = recorder
        self.kept = kept  # how many refusals there may be

    async def violation(self, gsid: str, origin: Origin, reason: str) -> Violation:
        """Whatever a stranger calls a session, little of it is kept."""
        shown = "".join(filter(str.isprintable, gsid[:SHOWN_MOST]))
        record_id = await self._refusals.keep(Event.GAME_VIOLATION, origin, reason=reason, subject=shown)
        return Violation(record_id, reason)

    async def blocked(self, gsid: str, origin: Origin, seconds: int) -> TooEarly:
        reason = f"polls before the delay is over; blocked for {seconds} s"
        record_id = await self._refusals.keep(Event.GAME_BLOCKED, origin, reason=reason, subject=gsid)
        return TooEarly(seconds, record_id)

    def ended(self, gsid: str, origin: Origin, reason: str) -> Refusal:
        """Stored together with the end it explains."""
        return self._recorder.refusal(Event.GAME_ENDED.value, origin, reason=reason, subject=gsid)
