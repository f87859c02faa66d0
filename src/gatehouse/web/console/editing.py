"""What forms that change a record share: lists as lines, and what somebody else saved meanwhile."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

UNLABELED_FIELDS: Final = frozenset(
    {"csrf", "version", "do", "kind", "value", "depth"}
)  # rows are told apart in words
NOT_CARRIED_FIELDS: Final = frozenset({"csrf", "do"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldConflict:
    """A field that was typed as one thing and is stored as another."""

    field: str  # the words are `field.<field>`
    typed: str
    stored: str


def join_lines(values: Iterable[str]) -> str:
    return "\n".join(values)


def split_lines(text: str) -> list[str]:
    """What was typed, a line or comma each."""
    parts = (part.strip() for line in text.splitlines() for part in line.split(","))
    return [part for part in parts if part]


def hidden_fields(form: msgspec.Struct) -> Sequence[tuple[str, str]]:
    """A form as hidden fields of the page that asks once more."""
    found: list[tuple[str, str]] = []
    for name in form.__struct_fields__:
        value = getattr(form, name)
        if name not in NOT_CARRIED_FIELDS:
            found += [(name, str(one)) for one in (value if isinstance(value, tuple) else (value,))]
    return found


def field_conflicts(typed: msgspec.Struct, stored: msgspec.Struct) -> tuple[FieldConflict, ...]:
    """A stale save never overwrites: it is shown beside the other change (optimistic versions, R6)."""
    pairs = (
        FieldConflict(
            field=name, typed=_comparable_text(getattr(typed, name)), stored=_comparable_text(getattr(stored, name))
        )
        for name in typed.__struct_fields__
        if name not in UNLABELED_FIELDS
    )
    return tuple(pair for pair in pairs if pair.typed != pair.stored)


def _comparable_text(value: object) -> str:
    """Browsers end lines with CR LF."""
    return str(value).replace("\r\n", "\n").strip()
