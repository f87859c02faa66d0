"""Rules for new passwords, and the operator's local list of breached passwords.

The list has one line `SHA-1:count` for each password, sorted by digest, as haveibeenpwned.com publishes it. It has
about forty gigabytes, so it is searched on disk; a lookup reads about forty lines. Nothing about a password is sent
to another service.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from msgspec import Struct

from gatehouse.accounts.errors import BadAccount, PasswordBreached, PasswordWeak
from gatehouse.kernel.errors import Misconfigured, Unavailable
from gatehouse.kernel.text import nfc

DIGEST_LENGTH: Final = 40
DIGEST_LINE: Final = re.compile(rb"[0-9A-Fa-f]{40}:[0-9]{1,12}\r?\n?")
MAX_LINE_LENGTH: Final = 64  # bytes; a longer line is malformed


class BreachedPasswordFile(Struct, eq=False):
    path: Path

    def contains(self, sha1: str) -> bool:
        """Search the sorted file for the digest. Raises Unavailable when the file cannot be read."""
        try:
            with self.path.open("rb") as lines:
                return digest_at(lines, lower_bound(lines, sha1.encode())) == sha1.encode()
        except OSError as error:
            raise Unavailable(f"cannot read the list of breached passwords: {error.strerror}") from error

    def refuse_invalid_format(self) -> None:
        """Raise Misconfigured for a file that does not begin like such a list."""
        try:
            with self.path.open("rb") as lines:
                first = lines.readline(MAX_LINE_LENGTH)
        except OSError as error:
            raise Misconfigured(f"cannot read {self.path}: {error.strerror}") from error
        if not DIGEST_LINE.fullmatch(first):
            raise Misconfigured(f"{self.path} does not start with a line like SHA-1:COUNT")


def lower_bound(lines: BinaryIO, wanted: bytes) -> int:
    """Return the lowest position after which the next line is not below the wanted digest."""
    low, high = 0, lines.seek(0, SEEK_END)
    while low < high:
        middle = (low + high) // 2
        digest = digest_at(lines, middle)
        if digest and digest < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def digest_at(lines: BinaryIO, position: int) -> bytes:
    """Return the digest in the first line that begins at or after the position; empty at the end."""
    lines.seek(max(position - 1, 0))
    if position:
        lines.readline(MAX_LINE_LENGTH)
    return lines.readline(MAX_LINE_LENGTH)[:DIGEST_LENGTH].upper()


# Rules for a new password, wherever it is set: page, command, applied file.
#
# Passwords are compared and stored in NFC, so that the same password typed on two systems matches (checklist
# LG-18). There is no rule about kinds of characters; the number of guesses counts, also for someone who knows the
# person.


ESTIMATOR: Final = "zxcvbn_rs_py"  # imported at the first check: it takes 2 MB
MIN_LENGTH: Final = 10  # characters
MAX_BYTES: Final = 1_024
# zxcvbn score 3: at the cost of our hashes this many guesses keep a machine busy for months.
MIN_GUESSES_LOG10: Final = 8  # power of ten

# The estimate tries every reading of digits and signs as letters, which takes seconds for some passwords and holds
# the interpreter lock. So only a prefix is estimated: a strong prefix makes a strong password.
MAX_ESTIMATED_LENGTH: Final = 32  # characters
LOOK_ALIKES: Final = frozenset("0123456789@({[<!|$+%")
MAX_LOOK_ALIKES: Final = 12  # distinct ones
MIN_WORD_LENGTH: Final = 3
WORD: Final = re.compile(r"[^\W_]+")


class BreachedPasswords(Protocol):
    def contains(self, sha1: str) -> bool:
        """Return whether the password with this digest (40 uppercase hex digits) was breached; may read a disk."""


class PasswordRules:
    def __init__(
        self, *, breached: BreachedPasswords | None = None, service_words: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """`service_words` returns names of this service, which attackers try first."""
        self._breached = breached
        self._service_words = service_words
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="password-rules")

    async def check(self, password: str, *own_words: str) -> None:
        """Raise BadAccount, PasswordWeak or PasswordBreached; `own_words` are login, nick and the like."""
        refuse_too_long(password)
        text = nfc(password)
        if len(text) < MIN_LENGTH:
            raise BadAccount(f"the password must have at least {MIN_LENGTH} characters").on_screen(
                "password_short", min_length=MIN_LENGTH
            )
        words = [*words_of(own_words), *words_of(self._service_words())]
        await asyncio.get_running_loop().run_in_executor(self._pool, self._check_strength, text, words)

    def _check_strength(self, text: str, words: list[str]) -> None:
        estimate = import_module(ESTIMATOR).zxcvbn
        if estimate(estimated_part(remove_words(text, words)), words).guesses_log10 < MIN_GUESSES_LOG10:
            raise PasswordWeak("the password is too easy to guess")
        if self._breached is not None and self._breached.contains(sha1(text)):
            raise PasswordBreached("the password appears in a list of breached passwords")


def refuse_too_long(password: str) -> None:
    if is_too_long(password):
        raise BadAccount(f"the password is longer than {MAX_BYTES} bytes").on_screen(
            "password_long", max_bytes=MAX_BYTES
        )


def is_too_long(password: str) -> bool:
    """Return whether the password exceeds MAX_BYTES as hashed; a megabyte is rejected before any work (LG-17)."""
    return len(password) > 4 * MAX_BYTES or len(nfc(password).encode("utf-8", "surrogatepass")) > MAX_BYTES


def estimated_part(text: str) -> str:
    """Return the prefix that is estimated."""
    seen: set[str] = set()
    for place, character in enumerate(text[:MAX_ESTIMATED_LENGTH]):
        seen |= LOOK_ALIKES & {character}
        if len(seen) > MAX_LOOK_ALIKES:
            return text[:place]
    return text[:MAX_ESTIMATED_LENGTH]


def remove_words(text: str, words: Iterable[str]) -> str:
    """Remove the words: they add nothing for an attacker who knows them."""
    known = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.sub(known, "", text, flags=re.IGNORECASE) if known else text


def words_of(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text and each of its words in lower case, as the estimate compares them."""
    for text in texts:
        whole = nfc(text).lower()
        yield from (word for word in (whole, *WORD.findall(whole)) if len(word) >= MIN_WORD_LENGTH)


def sha1(text: str) -> str:
    """Return the digest by which lists of breached passwords are keyed; it protects nothing here."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest().upper()
