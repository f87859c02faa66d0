"""What differs between two states, in the few words the audit log keeps."""

from collections.abc import Iterator, Mapping
from typing import Final

from gatehouse.audit.model import Details

LINES_MOST: Final = 40
VALUE_LONGEST: Final = 120


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> Details:
    """`{"settings.allowed_domains": "[] -> ['a.example']"}`; what does not fit is counted."""
    found = dict(_lines(before, after, ""))
    shown = dict(list(found.items())[:LINES_MOST])
    more = len(found) - len(shown)
    return {**shown, "and more": more} if more else shown


def _lines(before: Mapping[str, object], after: Mapping[str, object], place: str) -> Iterator[tuple[str, str]]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        where = f"{place}{name}"
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _lines(old, new, f"{where}.")
        else:
            yield where, f"{_short(old)} -> {_short(new)}"


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= VALUE_LONGEST else f"{text[:VALUE_LONGEST]}…"
