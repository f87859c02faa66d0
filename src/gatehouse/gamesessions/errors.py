"""What can go wrong with a game session."""

from gatehouse.kernel.errors import Conflict, Refused, TooMany, Unavailable
from gatehouse.tokens.errors import InvalidToken


class Violation(Refused):
    """Any of them: all look alike, and only the record tells why (interface §4.3, checklist GS-04)."""

    def __init__(self, record_id: str, detail: str) -> None:
        super().__init__(detail)
        self.record_id = record_id


class ServiceJwtRefused(InvalidToken):
    """A session was to be registered with a service JWT that is none; the record tells why."""

    def __init__(self, record_id: str, detail: str) -> None:
        super().__init__(detail)
        self.record_id = record_id


class TooEarly(TooMany):
    """A client that does not wait as it was told (R4)."""

    def __init__(self, retry_after: int, record_id: str) -> None:
        super().__init__(retry_after, "polled before the delay was over")
        self.record_id = record_id


class TooManySessions(Unavailable):
    """More game sessions are waiting than may (checklist GS-28)."""


class OptionsDamaged(Refused):
    """What was stored at its registration does not open; nobody signs in with it (faults R-25)."""

    public = "This game session can no longer be used."


class SessionOver(Conflict):
    """It was delivered, or came to nothing, before somebody could end it."""

    public = "This game session has already ended."
