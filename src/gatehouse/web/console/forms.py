"""Shared parts of forms that change a record: lists as lines, and conflicts with another save."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from gatehouse.web.pages.forms import CsrfForm

# Rows are compared as conditions; a private key is never shown again.
UNLABELED_FIELDS: Final = frozenset(
    {"csrf", "version", "confirmed", "do", "kind", "value", "depth", "private_key", "remove_private_key"}
)
NOT_CARRIED_FIELDS: Final = frozenset({"csrf", "do"})

Row = tuple[str, str]  # what it is about, and what it says


class FieldConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A field that was typed as one thing and is stored as another."""

    field: str = ""  # its label is `field.<field>`
    label: str = ""  # of a part of the form that is no field
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
            found += [(name, str(one)) for one in (value if isinstance(value, tuple | list) else (value,))]
    return found


class VersionedForm(CsrfForm, frozen=True, kw_only=True):
    version: int = 0


class ReviewedForm(CsrfForm, frozen=True, kw_only=True):
    """A form whose rows have buttons, or whose save shows its impact first.

    `do` is the button: empty for the form's own, `apply` or `edit` after a review, or one that changes rows.
    """

    do: str = ""


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


def row_conflicts(typed: Iterable[Row], stored: Iterable[Row]) -> tuple[FieldConflict, ...]:
    """The same for the rows of a form, those of each label together."""
    both: dict[str, tuple[list[str], list[str]]] = {}
    for side, rows in enumerate((typed, stored)):
        for label, words in rows:
            both.setdefault(label, ([], []))[side].append(words)
    texts = (
        (label, join_lines(sorted(yours)), join_lines(sorted(theirs))) for label, (yours, theirs) in both.items()
    )
    return tuple(
        FieldConflict(label=label, typed=yours, stored=theirs) for label, yours, theirs in texts if yours != theirs
    )


def _comparable_text(value: object) -> str:
    """A list has a line for each entry."""
    return form_text(join_lines(value) if isinstance(value, tuple) else str(value))


def form_text(text: str) -> str:
    """Return what was typed, without surrounding space; browsers end lines with CR LF."""
    return text.replace("\r\n", "\n").strip()
