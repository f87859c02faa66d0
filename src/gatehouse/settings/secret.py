"""Text that must not be shown: it appears in no repr, no log line, no error and no encoding."""

import re
from typing import Final

MASK: Final = "********"
SECRET_PARAMETER: Final = re.compile(r"([?&][a-z_]*(?:password|passphrase)=)[^&]*", re.ASCII)


class Secret:
    """Falsy when none was given. A plain class, because encoders know how to take dataclasses apart."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the code that works with it."""
        return self._text

    @property
    def masked(self) -> str:
        """What people may see of it."""
        return MASK if self._text else ""

    @property
    def is_masked(self) -> bool:
        return self.masked != self._text  # no secret is tested here: one side is the mask

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.masked!r})"


class DatabaseUrl(Secret):
    """A database address; only its password is hidden."""

    __slots__ = ()

    @property
    def masked(self) -> str:
        scheme, mark, rest = self._text.partition("://")
        # From the right: a password with a raw "@" or "/" in it is wrong, and must be hidden all the same.
        login, at, place = rest.rpartition("@")
        user, colon, _ = login.partition(":")
        return SECRET_PARAMETER.sub(rf"\1{MASK}", f"{scheme}{mark}{user}{colon and ':' + MASK}{at}{place}")

    @property
    def is_sqlite(self) -> bool:
        return self._text.startswith("sqlite:")
