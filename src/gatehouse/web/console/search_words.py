"""What is typed into the search, in words: in any order, with spaces for `_`, and sentences that assign a role."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

MAX_WORDS: Final = 6
# "assign moderator to Pia until friday"; the same in German.
ASSIGNMENT: Final = re.compile(
    r"(?:assign|give|zuweisen|gib)\s+(?P<role>.{1,100}?)\s+(?:to|an)\s+(?P<name>.{1,100}?)"
    r"(?:\s+(?:until|till|bis)\s+(?P<until>\S{1,20}))?",
    re.IGNORECASE,
)
ENDS: Final[Mapping[str, str]] = {
    **{name: name for name in ("today", "tomorrow")},
    **{day: day for day in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")},
    "heute": "today",
    "morgen": "tomorrow",
    "montag": "monday",
    "dienstag": "tuesday",
    "mittwoch": "wednesday",
    "donnerstag": "thursday",
    "freitag": "friday",
    "samstag": "saturday",
    "sonntag": "sunday",
}

T = TypeVar("T")


class AssignmentSentence(msgspec.Struct, frozen=True, kw_only=True):
    role: str
    name: str
    end: str = ""  # the English name of a day
    until: str = ""  # a date

    @property
    def query(self) -> Mapping[str, str]:
        """The end as the form of a role has it."""
        return {name: value for name, value in (("end", self.end), ("until", self.until)) if value}


def parse_assignment(text: str) -> AssignmentSentence | None:
    match = ASSIGNMENT.fullmatch(text.strip())
    if match is None:
        return None
    until = (match["until"] or "").casefold()
    end = ENDS.get(until, "")
    return AssignmentSentence(
        role=match["role"].strip(), name=match["name"].strip(), end=end, until="" if end else until
    )


def plain_words(text: str) -> str:
    return text.casefold().replace("_", " ")


def words_of(text: str) -> Sequence[str]:
    return plain_words(text).split()[:MAX_WORDS]


def has_words(text: str, words: Iterable[str]) -> bool:
    plain = plain_words(text)
    return all(word in plain for word in words)


def longest_word(words: Sequence[str]) -> str:
    """Return what a database is searched for; the other words are looked for in what it finds."""
    return max(words, key=len, default="")


def with_words(found: Iterable[T], words: Sequence[str], text_of: Callable[[T], str], most: int) -> list[T]:
    return [one for one in found if has_words(text_of(one), words)][:most]
