"""Counted sets: limits hold, and every acknowledged element is present (I5, I7)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from tests.faults.history import Act, History, by_key, describe, operations_of

UNKNOWN: Final = "?"  # an element whose name the lost response would have contained


def i5_limits_are_never_exceeded(history: History, limits: Mapping[str, int]) -> list[str]:
    """Check counts and the elements certainly present at once against `limits`, which are by key prefix."""
    return [
        *(
            f"I5: more than {limit}: {describe(operation)}"
            for operation in operations_of(history, Act.COUNT)
            if operation.ok
            and (limit := limit_of(operation.key, limits)) is not None
            and int(operation.value) > limit
        ),
        *(
            f"I5: {most} in {key!r} at once, {limit} are allowed"
            for key, about in by_key(operations_of(history, Act.ADD, Act.REMOVE)).items()
            if (limit := limit_of(key, limits)) is not None and (most := most_at_once(about)) > limit
        ),
    ]


def limit_of(key: str, limits: Mapping[str, int]) -> int | None:
    return limits.get(key.partition(":")[0])


def most_at_once(about: History) -> int:
    """The most elements at once: each counts from the response to its addition until the request to remove it."""
    removals = [operation for operation in operations_of(about, Act.REMOVE) if operation.maybe]
    moments = [(removal.t0, False, removal.value) for removal in removals]
    removed: dict[str, list[float]] = {}
    for one in removals:
        removed.setdefault(one.value, []).append(one.t0)
    moments += [
        (operation.t1, True, operation.value)
        for operation in operations_of(about, Act.ADD)
        if operation.ok and not any(operation.t0 < at < operation.t1 for at in removed.get(operation.value, []))
    ]
    there: set[str] = set()
    most = 0
    for _, comes, value in sorted(moments):
        (there.add if comes else there.discard)(value)
        most = max(most, len(there))
    return most


def i7_every_acknowledged_element_is_there(history: History, found: Mapping[str, Collection[str]]) -> list[str]:
    """`found` has the elements of each set after the run; no removed element was added again."""
    problems = []
    for key, about in by_key(operations_of(history, Act.ADD, Act.REMOVE)).items():
        there = found.get(key, ())
        added = {operation.value: operation for operation in operations_of(about, Act.ADD) if operation.ok}
        removed = {operation.value: operation for operation in operations_of(about, Act.REMOVE) if operation.ok}
        tried = {operation.value for operation in operations_of(about, Act.REMOVE) if operation.maybe}
        possible = {operation.value for operation in operations_of(about, Act.ADD) if operation.maybe}
        problems += [f"I7: lost: {describe(one)}" for value, one in added.items() if value not in {*there, *tried}]
        problems += [f"I7: came back: {describe(one)}" for value, one in removed.items() if value in there]
        unexpected = [value for value in there if value not in possible]
        if len(unexpected) > sum(
            operation.value == UNKNOWN for operation in operations_of(about, Act.ADD) if operation.maybe
        ):
            problems.append(f"I7: {unexpected} are in {key!r}, and so many were never added")
    return problems


def i5_names_are_unique(names: Sequence[str]) -> list[str]:
    return [f"I5: {name!r} is there {times} times" for name, times in Counter(names).items() if times > 1]
