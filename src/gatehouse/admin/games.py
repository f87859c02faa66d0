"""Game sessions as the console lists them.

A session is named by the beginning of its gsid. Whoever knows the whole of it can open its page, and poll it from the
game's address (R4): nobody gets that from a screen.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from gatehouse.admin.paging import Page, PageRequest
from gatehouse.audit.model import Refusal
from gatehouse.gamesessions.model import GameSession, GameSessionState
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import NotFound
from gatehouse.permissions.authentication.authenticator import AuthenticatedRequest
from gatehouse.permissions.rights.guard import Operation, require_operation

REF_LENGTH: Final = 13
REF_PATTERN: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}", re.ASCII)
REFUSALS_SHOWN: Final = 20


def session_ref(gsid: str) -> str:
    return gsid[:REF_LENGTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class GameSessionListItem:
    ref: str
    state: GameSessionState
    closed: str
    application_id: int  # 0 when it names none
    application: str
    user_id: str
    nick: str
    address: str
    polls: int
    created_at: int
    polled_at: int
    last_seen: int
    opened_at: int
    signing_in_at: int
    ends_at: int


class GameSessionListStore(Protocol):
    async def sessions(
        self, wanted: PageRequest, now: int, *, state: str, among: Collection[int] | None
    ) -> Page[GameSessionListItem]:
        """Those that last, the newest first. `among`: of these applications only; then nobody is searched for."""

    async def find_session(self, ref: str, now: int) -> GameSession | None:
        """The one whose gsid begins so, while it lasts."""

    async def refusals(self, gsid: str) -> Sequence[Refusal]:
        """What was refused about it, the newest first, as far as it is still kept."""


# One game session, for whoever administers and for those who see its application.


class GameSessionNotFound(NotFound):
    public = "Game session not found or already over."


class VisibleGameSessions:
    def __init__(self, *, sessions: GameSessionListStore, clock: Clock) -> None:
        self._sessions = sessions
        self._clock = clock

    async def get(self, request: AuthenticatedRequest, ref: str) -> GameSession:
        """One of the request's application; without an application any, for who administers."""
        if request.application_id is None:
            require_operation(request.rights, Operation.ADMINISTER)
        else:
            request.require_application(Operation.APPLICATION_GET)
        found = await self._sessions.find_session(ref, self._clock.now()) if REF_PATTERN.fullmatch(ref) else None
        if found is None or request.application_id not in (None, found.app_id, found.gapp_id):
            raise GameSessionNotFound
        return found
