"""A list of stolen passwords on the operator's own disk: nothing about a password ever leaves the house.

One line each, `SHA-1:count`, ordered by digest, as haveibeenpwned.com gives it out. It is some forty
gigabytes, so it is searched where it lies; a look-up reads about forty lines.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from gatehouse.accounts.errors import BadAccount, PasswordBreached, PasswordWeak
from gatehouse.kernel.errors import Misconfigured, Unavailable
from gatehouse.kernel.text import nfc

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


# What a new password must be, wherever one is set: page, command, applied file.
#
# Compared and kept in NFC, so that the same password typed on two systems is one (checklist LG-18). No rule
# about kinds of characters: what counts is how many guesses it takes, also by someone who knows the person.


ESTIMATOR: Final = "zxcvbn_rs_py"  # loaded when the first password is judged: it takes 2 MB
MIN_LENGTH: Final = 10  # characters
MAX_BYTES: Final = 1_024
# What zxcvbn scores 3: at the cost of our digests a machine is busy for months with so many guesses.
MIN_GUESSES_LOG10: Final = 8  # power of ten

# The estimate tries every reading of digits and signs as letters, which for some passwords takes seconds, and
# keeps the interpreter to itself meanwhile. So only a beginning is judged: what is strong so far stays strong.
MAX_ESTIMATED_LENGTH: Final = 32  # characters
LOOK_ALIKES: Final = frozenset("0123456789@({[<!|$+%")
MAX_LOOK_ALIKES: Final = 12  # different ones
MIN_WORD_LENGTH: Final = 3
WORD: Final = re.compile(r"[^\W_]+")


class BreachedPasswords(Protocol):
    def contains(self, sha1: str) -> bool:
        """Whether a password of that digest (40 hexadecimal capitals) was stolen; may read a disk."""


class PasswordRules:
    def __init__(self, *, breached: BreachedPasswords | None = None, service_words: Iterable[str] = ()) -> None:
        """`service_words` are names of this service, which anyone would try first."""
        self._breached = breached
        self._service_words = list(words_of(service_words))
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="password-rules")

    async def check(self, password: str, *own_words: str) -> None:
        """Raise BadAccount, PasswordWeak or PasswordBreached; the own words are login, nick and the like."""
        refuse_too_long(password)
        text = nfc(password)
        if len(text) < MIN_LENGTH:
            raise BadAccount(f"the password must have at least {MIN_LENGTH} characters")
        words = [*words_of(own_words), *self._service_words]
        await asyncio.get_running_loop().run_in_executor(self._pool, self._check_strength, text, words)

    def _check_strength(self, text: str, words: list[str]) -> None:
        estimate = import_module(ESTIMATOR).zxcvbn
        if estimate(estimated_part(remove_words(text, words)), words).guesses_log10 < MIN_GUESSES_LOG10:
            raise PasswordWeak("the password is too easy to guess")
        if self._breached is not None and self._breached.contains(sha1(text)):
            raise PasswordBreached("the password appears in a list of breached passwords")


def refuse_too_long(password: str) -> None:
    if is_too_long(password):
        raise BadAccount(f"the password is longer than {MAX_BYTES} bytes")


def is_too_long(password: str) -> bool:
    """Measured as it is hashed; a megabyte is turned away before anything is done with it (LG-17)."""
    return len(password) > 4 * MAX_BYTES or len(nfc(password).encode("utf-8", "surrogatepass")) > MAX_BYTES


def estimated_part(text: str) -> str:
    """The beginning that is estimated."""
    seen: set[str] = set()
    for place, character in enumerate(text[:MAX_ESTIMATED_LENGTH]):
        seen |= LOOK_ALIKES & {character}
        if len(seen) > MAX_LOOK_ALIKES:
            return text[:place]
    return text[:MAX_ESTIMATED_LENGTH]


def remove_words(text: str, words: Iterable[str]) -> str:
    """What is left when the words are taken out: they add nothing for someone who knows them."""
    known = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.sub(known, "", text, flags=re.IGNORECASE) if known else text


def words_of(texts: Iterable[str]) -> Iterator[str]:
    """Each text as a whole and word by word, in lower case, as the estimate compares them."""
    for text in texts:
        whole = nfc(text).lower()
        yield from (word for word in (whole, *WORD.findall(whole)) if len(word) >= MIN_WORD_LENGTH)


def sha1(text: str) -> str:
    """How lists of stolen passwords name them; protects nothing here."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest().upper()
