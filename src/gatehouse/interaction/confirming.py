"""What a person is asked before he is signed in somewhere else: on a device, in a game."""

from dataclasses import dataclass
from typing import Protocol

from gatehouse.audit.model import Origin
from gatehouse.interaction.model import Interaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    application: str  # its name
    code: str = ""  # what is shown there, to compare; empty when nothing is
    scopes: tuple[str, ...] = ()  # what it gets to know, where that needs consent
    asked_at: int
    address: str  # where it was asked for from


class Confirmable(Protocol):
    """An occasion whose last step is CONFIRM; `finish` is the yes."""

    async def question(self, interaction: Interaction) -> Question:
        """What to tell the person. Raises InteractionGone when nobody is waiting any more."""

    async def refuse(self, interaction: Interaction, origin: Origin) -> str:
        """He said no; returns the address the browser goes to."""
