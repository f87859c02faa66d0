"""The errors of game sessions."""

from gatehouse.kernel.errors import Conflict, Refused, TooMany, Unavailable
from gatehouse.tokens.claims import InvalidToken


class Violation(Refused):
    """Any violation. All look alike, and only the record has the reason (interface §4.3, checklist GS-04)."""

    def __init__(self, record_id: str, detail: str) -> None:
        super().__init__(detail)
        self.record_id = record_id


class ServiceJwtRefused(InvalidToken):
    """A registration with an invalid service JWT; the record has the reason."""

    def __init__(self, record_id: str, detail: str) -> None:
        super().__init__(detail)
        self.record_id = record_id


class TooEarly(TooMany):
    """A client polls earlier than it was told to (R4)."""

    def __init__(self, retry_after: int, record_id: str) -> None:
        super().__init__(retry_after, "polled before the delay was over")
        self.record_id = record_id


class TooManySessions(Unavailable):
    """The limit of pending game sessions is reached (checklist GS-28)."""


class OptionsDamaged(Refused):
    """The sealed options of the session cannot be opened, so no one can sign in with it (faults R-25)."""

    public = "This game session can no longer be used."


class SessionOver(Conflict):
    """The session was delivered or failed before it could be ended."""

    public = "This game session has already ended."
