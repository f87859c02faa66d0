"""What counting guesses needs kept."""

from typing import Protocol

from gatehouse.throttle.model import GuessLimit


class AttemptStore(Protocol):
    async def blocked_until(self, subject: bytes) -> int:
        """The Unix second until which the subject is refused; 0 or a past one when it is not."""

    async def failed(self, subject: bytes, limit: GuessLimit, now: int) -> int:
        """Count one failure and return until when the subject is refused now.

        Atomic: of any number of callers on any number of nodes every failure counts (LG-06, R-12).
        """

    async def clear(self, subject: bytes) -> None:
        """Forget the subject's failures, after it has proved itself."""
