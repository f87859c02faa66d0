"""What game sessions ask of others; the composition root hands the answers in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class ClientConnection(Protocol):
    """The connection a poll came on."""

    def is_open(self) -> bool:
        """Whether the other end is there, as far as this machine can know at this moment."""

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Call it once the other end is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GameLoginSettings:
    """What an application says about signing in to it from games."""

    name: str = ""  # what people call it; empty when there is no such application
    enabled: bool = True
    code_match: bool = False  # whoever is elsewhere picks the code that the game shows


class GameApplications(Protocol):
    async def game_login_settings(self, application_id: int) -> GameLoginSettings:
        """Those of an application, or the usual ones when there is none."""


class ServiceJwtReader(Protocol):
    async def service_application(self, service_jwt: str) -> int:
        """Whose service JWT this is. Raises InvalidToken."""
