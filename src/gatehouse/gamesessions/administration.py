"""An administrator ends a game session; callers have checked the right."""

from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.gamesessions.refusals import GameRefusals
from gatehouse.gamesessions.store import GameSessionStore
from gatehouse.kernel.clock import Clock

MAX_REASON_LENGTH: Final = 200


class GameSessionAdmin:
    def __init__(self, *, store: GameSessionStore, refusals: GameRefusals, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._refusals = refusals
        self._recorder = recorder
        self._clock = clock

    async def close(self, gsid: str, reason: str, origin: AuditOrigin) -> bool:
        """Answer the game with ERROR and the record's ID, now or at its next poll; False if the session is over."""
        said = "".join(filter(str.isprintable, reason))[:MAX_REASON_LENGTH]
        refusal = self._refusals.end_refusal(gsid, origin, f"closed by an administrator: {said or 'no reason given'}")
        entry = self._recorder.record(
            AuditEvent.GAME_CLOSED, origin, subject=gsid, details={"reason": said, "record": refusal.record_id}
        )
        return await self._store.close_session_by_admin(
            gsid, self._clock.now(), refusal, self._refusals.max_refusals, entry=entry
        )
