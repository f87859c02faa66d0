"""What one sees first: whether anything is wrong, and what ends soon."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class EndingKind(StrEnum):
    """What comes to an end; the words are `home.ends_<value>`."""

    ROLE = "role"
    SERVICE_TOKEN = "service_token"  # noqa: S105 - words


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingSoon:
    what: EndingKind
    name: str  # the role, or what a token is for
    application_id: int
    application: str
    user_id: str = ""
    nick: str = ""
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationCounts:
    """How much there is of everything, as far as a first look goes."""

    people: int
    administrators_with_factor: int
    projects: int
    applications: int  # beside application 1
    roles: int  # of those applications
    clients: int
    waiting_games: int


class HomeStore(Protocol):
    async def counts(self, now: int) -> InstallationCounts: ...

    async def ending_soon(self, now: int, until: int, most: int) -> Sequence[EndingSoon]:
        """Roles and keys that end between the two, the next first."""
