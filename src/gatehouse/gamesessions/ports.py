"""What game sessions ask of others; the composition root hands the answers in."""

from collections.abc import Callable
from typing import Protocol


class Line(Protocol):
    """The connection a poll came on."""

    def is_open(self) -> bool:
        """Whether the other end is there, as far as this machine can know at this moment."""

    def when_lost(self, callback: Callable[[], object]) -> None:
        """Call it once the other end is gone."""


class Applications(Protocol):
    async def name(self, application_id: int) -> str:
        """What people call it; empty when there is no such application."""


class ServiceJwts(Protocol):
    async def service_application(self, service_jwt: str) -> int:
        """Whose service JWT this is. Raises InvalidToken."""
