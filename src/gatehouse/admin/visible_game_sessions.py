"""One game session, for administrators and for those who see its application."""

from gatehouse.admin.games import REF_PATTERN, GameSessionListStore
from gatehouse.gamesessions.model import GameSession
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.rights.guard import Operation, require_operation


class GameSessionNotFound(NotFound):
    public = "Game session not found or already over."


class VisibleGameSessions:
    def __init__(self, *, sessions: GameSessionListStore, clock: Clock) -> None:
        self._sessions = sessions
        self._clock = clock

    async def get(self, request: AuthenticatedRequest, ref: str) -> GameSession:
        """Return a session of the request's application; without an application any, for administrators."""
        if request.application_id is None:
            require_operation(request.rights, Operation.ADMINISTER)
        else:
            request.require_application(Operation.APPLICATION_GET)
        session = await self._sessions.find_session(ref, self._clock.now()) if REF_PATTERN.fullmatch(ref) else None
        if session is None or request.application_id not in (None, session.app_id, session.gapp_id):
            raise GameSessionNotFound
        return session
