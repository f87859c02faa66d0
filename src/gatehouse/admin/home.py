"""The console's home page: counts, and what expires soon."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class EndingKind(StrEnum):
    """What expires; the texts are `home.ends_<value>`."""

    ROLE = "role"
    SERVICE_TOKEN = "service_token"  # noqa: S105 - a kind, no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingSoon:
    what: EndingKind
    name: str  # of the role, or the purpose of a token
    application_id: int
    application: str
    user_id: str = ""
    nick: str = ""
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationCounts:
    """Counts of the main kinds of records."""

    people: int
    administrators_with_factor: int
    projects: int
    applications: int  # without application 1
    roles: int  # of those applications
    clients: int
    waiting_games: int


class HomeStore(Protocol):
    async def counts(self, now: int) -> InstallationCounts: ...

    async def ending_soon(self, now: int, until: int, most: int) -> Sequence[EndingSoon]:
        """Return roles and keys that expire between the two times, the next first."""
