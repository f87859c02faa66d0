"""A list of stolen passwords on the operator's own disk: nothing about a password ever leaves the house.

One line each, `SHA-1:count`, ordered by digest, as haveibeenpwned.com gives it out. It is some forty
gigabytes, so it is searched where it lies; a look-up reads about forty lines.
"""

import re
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO, Final

from gatehouse.kernel.errors import Misconfigured, Unavailable

DIGEST_LENGTH: Final = 40
DIGEST_LINE: Final = re.compile(rb"[0-9A-Fa-f]{40}:[0-9]{1,12}\r?\n?")
MAX_LINE_LENGTH: Final = 64  # bytes; whatever is longer is no such line


class BreachedPasswordFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def contains(self, sha1: str) -> bool:
        """Search by halves; a file that cannot be read is no answer, and raises Unavailable."""
        try:
            with self._path.open("rb") as lines:
                return digest_at(lines, lower_bound(lines, sha1.encode())) == sha1.encode()
        except OSError as error:
            raise Unavailable(f"cannot read the list of breached passwords: {error.strerror}") from error

    def refuse_invalid_format(self) -> None:
        """Raise Misconfigured for a file that is not such a list; only its beginning is looked at."""
        try:
            with self._path.open("rb") as lines:
                first = lines.readline(MAX_LINE_LENGTH)
        except OSError as error:
            raise Misconfigured(f"cannot read {self._path}: {error.strerror}") from error
        if not DIGEST_LINE.fullmatch(first):
            raise Misconfigured(f"{self._path} does not start with a line like SHA-1:COUNT")


def lower_bound(lines: BinaryIO, wanted: bytes) -> int:
    """The least position after which the next line is not below the wanted one."""
    low, high = 0, lines.seek(0, SEEK_END)
    while low < high:
        middle = (low + high) // 2
        found = digest_at(lines, middle)
        if found and found < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def digest_at(lines: BinaryIO, position: int) -> bytes:
    """The digest in the first line that begins at the position or after it; nothing at the end."""
    lines.seek(max(position - 1, 0))
    if position:
        lines.readline(MAX_LINE_LENGTH)
    return lines.readline(MAX_LINE_LENGTH)[:DIGEST_LENGTH].upper()
