"""Game sessions as the console lists them.

A session is named by the beginning of its gsid. The whole gsid opens the session's page and polls it from the game's
address (R4), so no screen shows it.
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
    application_id: int  # 0 for none
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
        self, page_request: PageRequest, now: int, *, state: str, among: Collection[int] | None
    ) -> Page[GameSessionListItem]:
        """Return a page of open sessions, the newest first.

        `among`: only these applications; people are then not searched.
        """

    async def find_session(self, ref: str, now: int) -> GameSession | None:
        """Return the session whose gsid begins so, if it has not ended."""

    async def refusals(self, gsid: str) -> Sequence[Refusal]:
        """Return the stored refusals about the session, the newest first."""


# One game session, for administrators and for those who see its application.


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
        found = await self._sessions.find_session(ref, self._clock.now()) if REF_PATTERN.fullmatch(ref) else None
        if found is None or request.application_id not in (None, found.app_id, found.gapp_id):
            raise GameSessionNotFound
        return found
