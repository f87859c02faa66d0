"""The base of every error of a package, and the few kinds that all packages share.

An error has a public part for the caller and a private part for the log, and does not know HTTP: only
`web/http/errors.py` turns it into a response.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Self


class GatehouseError(Exception):
    """`public` may be shown to the caller; `detail` is only logged.

    Screens of the console have texts of their own, in every language: `problem.<screen_key>`, or that of its class.
    """

    public: ClassVar[str] = "The request failed."
    screen_key: str = ""
    screen_values: Mapping[str, object] = MappingProxyType({})

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.public)
        self.detail = detail

    def on_screen(self, key: str, /, **values: object) -> Self:
        """Name the console's own text for this detail, and the values in it."""
        self.screen_key, self.screen_values = key, values
        return self


class BadInput(GatehouseError):
    """The caller's input is malformed; here the detail is about that input and safe to show to the caller."""

    public = "The request is malformed."


class NotFound(GatehouseError):
    public = "Not found."


class Conflict(GatehouseError):
    """The request conflicts with the stored state: a name taken, a limit reached, an old version."""

    public = "The request conflicts with the current state."


class Refused(GatehouseError):
    """The caller is known and is not allowed to do this."""

    public = "You are not allowed to do this."


class TooMany(GatehouseError):
    """The caller should try again later."""

    public = "Too many requests."

    def __init__(self, retry_after: int, detail: str = "") -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Unavailable(GatehouseError):
    """A dependency cannot be reached; nothing was decided, try again."""

    public = "The service is temporarily unavailable."


class OutcomeUnknown(Unavailable):
    """The connection to the database broke while it committed a change: the change may have happened."""


class Misconfigured(GatehouseError):
    """The installation has an error that must be fixed before it can start."""

    public = "Gatehouse cannot start with this configuration."


class NotWritable(Misconfigured):
    """A directory or file that must be written to is read-only."""
