"""One game session, for whoever administers and for those who see its application."""

from gatehouse.admin.model.games import REF, GameListStore
from gatehouse.gamesessions.model import GameSession
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.callers.desk import Visit
from gatehouse.permissions.rights.guard import Operation, require


class GameSessionNotFound(NotFound):
    public = "Game session not found or already over."


class SeenGames:
    def __init__(self, *, sessions: GameListStore, clock: Clock) -> None:
        self._sessions = sessions
        self._clock = clock

    async def get(self, visit: Visit, ref: str) -> GameSession:
        """One of the request's application; without an application any, for who administers."""
        if visit.application_id is None:
            require(visit.rights, Operation.ADMINISTER)
        else:
            visit.opened(Operation.APPLICATION_GET)
        found = await self._sessions.session(ref, self._clock.now()) if REF.fullmatch(ref) else None
        if found is None or visit.application_id not in (None, found.app_id, found.gapp_id):
            raise GameSessionNotFound
        return found
