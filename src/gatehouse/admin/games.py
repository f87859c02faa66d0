"""One game session, for whoever administers and for those who see its application."""

from gatehouse.admin.model.games import REF_PATTERN, GameSessionListStore
from gatehouse.gamesessions.model import GameSession
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.callers.desk import AuthenticatedRequest
from gatehouse.permissions.rights.guard import Operation, require_operation


class GameSessionNotFound(NotFound):
    public = "There is no such game session, or it is over."


class VisibleGameSessions:
    def __init__(self, *, sessions: GameSessionListStore, clock: Clock) -> None:
        self._sessions = sessions
        self._clock = clock

    async def get(self, visit: AuthenticatedRequest, ref: str) -> GameSession:
        """One of the request's application; without an application any, for who administers."""
        if visit.application_id is None:
            require_operation(visit.rights, Operation.ADMINISTER)
        else:
            visit.opened(Operation.APPLICATION_GET)
        found = await self._sessions.session(ref, self._clock.now()) if REF_PATTERN.fullmatch(ref) else None
        if found is None or visit.application_id not in (None, found.app_id, found.gapp_id):
            raise GameSessionNotFound
        return found
