"""What forms that change a record share: lists as lines, and what somebody else saved meanwhile."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

NO_WORDS: Final = frozenset({"csrf", "version", "do", "kind", "value", "depth"})  # rows are told apart in words
NOT_CARRIED: Final = frozenset({"csrf", "do"})


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


def carried(form: msgspec.Struct) -> Sequence[tuple[str, str]]:
    """A form as hidden fields of the page that asks once more."""
    found: list[tuple[str, str]] = []
    for name in form.__struct_fields__:
        value = getattr(form, name)
        if name not in NOT_CARRIED:
            found += [(name, str(one)) for one in (value if isinstance(value, tuple) else (value,))]
    return found


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
