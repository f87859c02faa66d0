"""Secrets that appear in no repr, log line, error or encoding."""

import re
from typing import Final

MASK: Final = "********"
SECRET_PARAMETER: Final = re.compile(r"([?&][a-z_]*(?:password|passphrase)=)[^&]*", re.ASCII)


class Secret:
    """Falsy when not set. A plain class, because encoders know how to take dataclasses apart."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text, for the code that uses it."""
        return self._text

    @property
    def masked(self) -> str:
        """Return the form for display."""
        return MASK if self._text else ""

    @property
    def is_masked(self) -> bool:
        return self.masked != self._text  # the comparison is with the mask, so it leaks nothing

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.masked!r})"


class DatabaseUrl(Secret):
    """A database address with only its password hidden."""

    __slots__ = ()

    @property
    def masked(self) -> str:
        scheme, mark, rest = self._text.partition("://")
        # From the right: a password with a raw "@" or "/" is invalid and must still be hidden.
        login, at, place = rest.rpartition("@")
        user, colon, _ = login.partition(":")
        return SECRET_PARAMETER.sub(rf"\1{MASK}", f"{scheme}{mark}{user}{colon and ':' + MASK}{at}{place}")

    @property
    def is_sqlite(self) -> bool:
        return self._text.startswith("sqlite:")
