"""What forms that change a record share: lists as lines, and what somebody else saved meanwhile."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

NO_WORDS: Final = frozenset({"csrf", "version"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A field that was typed as one thing and is stored as another."""

    field: str  # the words are `field.<field>`
    typed: str
    stored: str


def lines(values: Iterable[str]) -> str:
    return "\n".join(values)


def typed_lines(text: str) -> list[str]:
    """What was typed, a line or comma each."""
    parts = (part.strip() for line in text.splitlines() for part in line.split(","))
    return [part for part in parts if part]


def clashes(typed: msgspec.Struct, stored: msgspec.Struct) -> tuple[Clash, ...]:
    """A stale save never overwrites: it is shown beside the other change (optimistic versions, R6)."""
    pairs = (
        Clash(field=name, typed=_one_ending(getattr(typed, name)), stored=_one_ending(getattr(stored, name)))
        for name in typed.__struct_fields__
        if name not in NO_WORDS
    )
    return tuple(pair for pair in pairs if pair.typed != pair.stored)


def _one_ending(value: object) -> str:
    """Browsers end lines with CR LF."""
    return str(value).replace("\r\n", "\n").strip()
