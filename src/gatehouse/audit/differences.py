"""What differs between two states, in the few words the audit log keeps."""

from collections.abc import Iterator, Mapping
from typing import Final

from gatehouse.audit.model import Details

MAX_CHANGES: Final = 40
MAX_VALUE_LENGTH: Final = 120


def describe_changes(before: Mapping[str, object], after: Mapping[str, object]) -> Details:
    """`{"settings.allowed_domains": "[] -> ['a.example']"}`; what does not fit is counted."""
    found = dict(_changed_values(before, after, ""))
    shown = dict(list(found.items())[:MAX_CHANGES])
    more = len(found) - len(shown)
    return {**shown, "and more": more} if more else shown


def _changed_values(
    before: Mapping[str, object], after: Mapping[str, object], place: str
) -> Iterator[tuple[str, str]]:
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        where = f"{place}{name}"
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _changed_values(old, new, f"{where}.")
        else:
            yield where, f"{_shorten(old)} -> {_shorten(new)}"


def _shorten(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
