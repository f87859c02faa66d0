"""The ranges of paths in which a person has a rule on objects (R12). Pure.

Objects are in the order of their paths, and everything below an object follows it. So a scope that allows opens a
range, and a scope below it that speaks closes or opens a part of it.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from gatehouse.permissions.model.objects import AFTER_SEPARATOR, parent_path, scope_paths, subtree_end

JUST_AFTER = " "  # sorts below every character of a path: what follows a path begins here


class PathRange(Struct, frozen=True):
    """The paths from the first text on, and before the second."""

    begin: str
    end: str


def position_after(path: str) -> str:
    """The position behind an object and before everything below it."""
    return f"{path}{JUST_AFTER}"


def scopes_around(position: str) -> Iterable[str]:
    """The paths of the objects that a position is in, the nearest first."""
    if position.endswith(JUST_AFTER):
        return scope_paths(position.removesuffix(JUST_AFTER))
    return scope_paths(parent_path(position))


def allowed_ranges(verdicts: Mapping[str, bool], *, base: bool, position: str, end: str) -> Sequence[PathRange]:
    """The ranges from `position` to `end` in which the nearest scope that speaks allows.

    `verdicts`: of scopes that speak, by path: those around the position, and those behind it. `base`: outside of all.
    """
    ranges: list[PathRange] = []
    around = [path for path in scopes_around(position) if path in verdicts]
    open_scopes = [(subtree_end(path), verdicts[path]) for path in reversed(around)]  # the innermost last

    def emit(until: str) -> None:
        nonlocal position
        allowed = open_scopes[-1][1] if open_scopes else base
        if allowed and position < until:
            if ranges and ranges[-1].end == position:
                ranges[-1] = PathRange(ranges[-1].begin, until)
            else:
                ranges.append(PathRange(position, until))
        position = max(position, until)

    for path in sorted(path for path in verdicts if position <= path < end):
        while open_scopes and open_scopes[-1][0] <= path:
            emit(open_scopes[-1][0])
            open_scopes.pop()
        emit(path)
        open_scopes.append((subtree_end(path), verdicts[path]))
    while open_scopes and open_scopes[-1][0] <= end:
        emit(open_scopes[-1][0])
        open_scopes.pop()
    emit(end)
    return ranges


def place_end(place: str) -> str:
    """The first text behind all paths of a place."""
    return f"{place}{AFTER_SEPARATOR}"
