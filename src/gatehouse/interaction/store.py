"""What a sign-in under way needs kept."""

from typing import Protocol

from gatehouse.audit.model import Record
from gatehouse.interaction.model import Interaction


class InteractionStore(Protocol):
    async def begin(self, interaction: Interaction) -> None:
        """Keep a new one."""

    async def find(self, digest: bytes, now: int) -> Interaction | None:
        """Return it while it lasts."""

    async def move(self, interaction: Interaction) -> Interaction:
        """Replace step, user, auth, failures and ask if the version is still the one that was read.

        Of two windows that move one interaction exactly one succeeds; the other gets InteractionMoved.
        Returns it with its new version.
        """

    async def finish(self, digest: bytes, now: int, record: Record | None = None) -> Interaction | None:
        """Take it away and return it, once: of any number of callers one gets it, and leaves the record."""
