"""A record is a single register on all nodes: a saved value is read from then on (I6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from tests.faults.history import Act, History, Operation, Result, by_key, describe, operations_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """The time in which a record certainly had a value.

    If `begins` is not before `ends`, it had the value at some time between them.
    """

    value: str
    begins: float  # the earliest end of its operations
    ends: float  # the latest start of them
    certain: bool


def i6_every_record_is_linearizable(history: History) -> list[str]:
    """Each record's saves and reads have an order that fits their times, over all nodes.

    Values are unique, so each read identifies its save. That makes it easy (Gibbons and Korach, 1997): two values
    that were certainly present must not overlap, and none may have come and gone entirely while a different one was
    present.
    """
    return [
        problem
        for key, about in by_key(operations_of(history, Act.WRITE, Act.READ)).items()
        for problem in (*unknown_values(key, about), *overlaps(key, zones_of(about)))
    ]


def unknown_values(key: str, about: History) -> list[str]:
    """Reads of a value that was never written, was refused, or was not yet sent."""
    started: dict[str, float] = {}
    for operation in operations_of(about, Act.WRITE):
        if operation.maybe:
            started[operation.value] = min(operation.t0, started.get(operation.value, inf))
    problems = []
    for operation in operations_of(about, Act.READ):
        if not operation.ok or not operation.value:  # an empty value: the record before any save
            continue
        if operation.value not in started:
            problems.append(f"I6: {key!r}: read what was never saved: {describe(operation)}")
        elif operation.t1 < started[operation.value]:
            problems.append(f"I6: {key!r}: read before anyone began to save it: {describe(operation)}")
    return problems


def zones_of(about: History) -> list[Zone]:
    clusters: dict[str, list[Operation]] = {"": []}
    for op in about:
        if op.ok or (op.op is Act.WRITE and op.maybe):
            clusters.setdefault(op.value, []).append(op)
    seen = {operation.value for operation in operations_of(about, Act.READ) if operation.ok}
    return [
        zone_of(value, cluster)
        for value, cluster in clusters.items()
        if value in seen or any(operation.ok for operation in cluster)
    ]


def zone_of(value: str, cluster: Sequence[Operation]) -> Zone:
    first = -inf if value == "" else min(one.over for one in cluster)
    last = max((operation.t0 for operation in cluster), default=-inf)
    return Zone(value=value, begins=min(first, last), ends=max(first, last), certain=first < last)


def overlaps(key: str, zones: Sequence[Zone]) -> list[str]:
    certain = sorted((zone for zone in zones if zone.certain), key=lambda zone: zone.begins)
    problems = [
        f"I6: {key!r}: {one.value!r} was read after {other.value!r} had replaced it"
        for one, other in pairwise(certain)
        if other.begins < one.ends
    ]
    loose = [zone for zone in zones if not zone.certain]
    return problems + [
        f"I6: {key!r}: {one.value!r} was saved and lost while {other.value!r} was there"
        for one in loose
        for other in certain
        if other.begins < one.begins and one.ends < other.ends
    ]


def i6_versions_grow_by_one(history: History) -> list[str]:
    """No two saves return the same version, later saves return higher ones, and each save counts once."""
    problems = []
    for key, about in by_key(
        operation
        for operation in operations_of(history, Act.WRITE, Act.FOUND)
        if operation.version or not operation.ok
    ).items():
        saved = sorted(
            (operation for operation in operations_of(about, Act.WRITE) if operation.ok), key=lambda one: one.version
        )
        problems += [
            f"I6: {key!r}: version {one.version} twice: {describe(one)}, {describe(other)}"
            for one, other in pairwise(saved)
            if one.version == other.version
        ]
        problems += [
            f"I6: {key!r}: {describe(other)} had version {other.version} after {describe(one)} had {one.version}"
            for one, other in pairwise(saved)
            if other.t1 < one.t0
        ]
        problems += version_problems(key, saved, about)
    return problems


def version_problems(key: str, saved: Sequence[Operation], about: History) -> list[str]:
    """Check versions from the initial one, in the `found` without a value, to that of the last `found`."""
    ends = {bool(operation.value): operation.version for operation in operations_of(about, Act.FOUND) if operation.ok}
    if len(ends) < len((True, False)):
        return []
    maybe = [operation for operation in operations_of(about, Act.WRITE) if operation.result is Result.INFO]
    grown = ends[True] - ends[False]
    if len(saved) <= grown <= len(saved) + len(maybe):
        return []
    return [f"I6: {key!r}: version grew by {grown} with {len(saved)} saves and {len(maybe)} that may have been"]
