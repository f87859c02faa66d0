"""What counting guesses needs kept."""

from collections.abc import Sequence
from typing import Protocol

from gatehouse.throttle.model import AttemptLimit


class AttemptStore(Protocol):
    async def blocked_until(self, subjects: Sequence[str]) -> int:
        """The Unix second until which any of them is refused; 0 or a past one when none is."""

    async def record_failures(self, subjects: Sequence[tuple[str, AttemptLimit]], now: int) -> int:
        """Count one failure for each and return until when any of them is refused now.

        One atomic act: of any number of callers on any number of nodes every failure counts (LG-06, R-12).
        """

    async def begin_attempts(self, subjects: Sequence[tuple[str, AttemptLimit]], now: int) -> None:
        """Count one guess for each before it is made. Raises TooMany while any of them is refused.

        Looking and counting are one atomic act, and who is refused counts for none of them: of any number of
        callers on any number of nodes no more get through than the limits allow one after the other (LG-06, R-12).
        """

    async def undo_attempts(
        self, subjects: Sequence[tuple[str, AttemptLimit]], at: int, *, forgiven: Sequence[str] = ()
    ) -> None:
        """Count one less for each, of those begun at that second, and open what that one had closed.

        In the same act everything is forgotten of the forgiven. Other failures stay, and so do their blocks.
        """

    async def clear_failures(self, subjects: Sequence[str]) -> None:
        """Forget their failures, after someone has proved himself."""
