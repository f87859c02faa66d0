"""What counting guesses needs kept."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.throttle.model import GuessLimit


class AttemptStore(Protocol):
    async def blocked_until(self, subjects: Sequence[str]) -> int:
        """The Unix second until which any of them is refused; 0 or a past one when none is."""

    async def failed(self, subjects: Sequence[tuple[str, GuessLimit]], now: int) -> int:
        """Count one failure for each and return until when any of them is refused now.

        One atomic act: of any number of callers on any number of nodes every failure counts (LG-06, R-12).
        """

    async def clear(self, subjects: Sequence[str]) -> None:
        """Forget their failures, after someone has proved himself."""
