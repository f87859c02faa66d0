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
            f"I5: more than {limit}: {describe(one)}"
            for one in operations_of(history, Act.COUNT)
            if one.ok and (limit := limit_of(one.key, limits)) is not None and int(one.value) > limit
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
    removals = [one for one in operations_of(about, Act.REMOVE) if one.maybe]
    moments = [(one.t0, False, one.value) for one in removals]
    gone: dict[str, list[float]] = {}
    for one in removals:
        gone.setdefault(one.value, []).append(one.t0)
    moments += [
        (one.t1, True, one.value)
        for one in operations_of(about, Act.ADD)
        if one.ok and not any(one.t0 < at < one.t1 for at in gone.get(one.value, []))
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
        added = {one.value: one for one in operations_of(about, Act.ADD) if one.ok}
        removed = {one.value: one for one in operations_of(about, Act.REMOVE) if one.ok}
        tried = {one.value for one in operations_of(about, Act.REMOVE) if one.maybe}
        possible = {one.value for one in operations_of(about, Act.ADD) if one.maybe}
        problems += [f"I7: lost: {describe(one)}" for value, one in added.items() if value not in {*there, *tried}]
        problems += [f"I7: came back: {describe(one)}" for value, one in removed.items() if value in there]
        unexpected = [value for value in there if value not in possible]
        if len(unexpected) > sum(one.value == UNKNOWN for one in operations_of(about, Act.ADD) if one.maybe):
            problems.append(f"I7: {unexpected} are in {key!r}, and so many were never added")
    return problems


def i5_names_are_unique(names: Sequence[str]) -> list[str]:
    return [f"I5: {name!r} is there {times} times" for name, times in Counter(names).items() if times > 1]
