"""What a sign-in under way needs kept."""

from typing import Protocol

from gatehouse.audit.model import AuditRecord
from gatehouse.interaction.model import SignInFlow


class SignInFlowStore(Protocol):
    async def create_flow(self, flow: SignInFlow) -> None:
        """Keep a new one."""

    async def find_flow(self, digest: bytes, now: int) -> SignInFlow | None:
        """Return it while it lasts."""

    async def update_flow(self, flow: SignInFlow) -> SignInFlow:
        """Replace step, user, auth, failures and ask if the version is still the one that was read.

        Of two windows that move one interaction exactly one succeeds; the other gets InteractionMoved.
        Returns it with its new version.
        """

    async def take_flow(self, digest: bytes, now: int, record: AuditRecord | None = None) -> SignInFlow | None:
        """Take it away and return it, once: of any number of callers one gets it, and leaves the record."""
