"""What was ended stays ended, and what was not ended stays valid (I3, I9, I11, I12)."""

from tests.faults.history import Act, History, Operation, Result, by_key, describe, operations_of


def i3_what_was_ended_stays_ended(history: History) -> list[str]:
    """After an acknowledged end nothing succeeds, unless it may have been begun again since (I3 and I9)."""
    problems = []
    for about in by_key(operations_of(history, Act.BEGIN, Act.END, Act.USE)).values():
        uses = [operation for operation in operations_of(about, Act.USE) if operation.ok]
        ends = [operation for operation in operations_of(about, Act.END) if operation.ok]
        begins = [operation for operation in operations_of(about, Act.BEGIN) if operation.maybe]
        problems += [
            f"I3: {describe(end)}, and then {describe(use)}"
            for use in uses
            for end in newest_before(use, ends)
            if not any(begin.over > end.t0 and begin.t0 < use.t1 for begin in begins)
        ]
    return problems


def i11_what_was_not_ended_goes_on(history: History) -> list[str]:
    """Nothing valid is refused (I11), and a permission given on one node is effective on the other (I6)."""
    problems = []
    for about in by_key(operations_of(history, Act.BEGIN, Act.END, Act.USE)).values():
        uses = [operation for operation in operations_of(about, Act.USE) if operation.result is Result.FAIL]
        begins = [operation for operation in operations_of(about, Act.BEGIN) if operation.ok]
        ends = [operation for operation in operations_of(about, Act.END) if operation.maybe]
        problems += [
            f"I11: {describe(begin)}, and then {describe(use)}"
            for use in uses
            for begin in newest_before(use, begins)
            if not any(end.over > begin.t0 and end.t0 < use.t1 for end in ends)
        ]
    return problems


def newest_before(use: Operation, acknowledged: list[Operation]) -> list[Operation]:
    """The last of these that was answered before that request began, or None."""
    before = [operation for operation in acknowledged if operation.t1 < use.t0]
    return [max(before, key=lambda one: one.t0)] if before else []


def i12_nothing_succeeds_without_what_it_needs(history: History) -> list[str]:
    """Nothing that began and ended while the database was down succeeded."""
    free = (Act.OPEN, Act.FAULT, Act.MEASURE)
    return [
        f"I12: during {describe(removed)}: {describe(operation)}"
        for removed in operations_of(history, Act.FAULT)
        for operation in history
        if operation.op not in free and operation.ok and removed.t0 < operation.t0 and operation.t1 < removed.t1
    ]


def public_endpoints_stay_available(history: History) -> list[str]:
    """Keys, discovery and the like respond whatever the database does."""
    return [
        f"R-08: {describe(operation)} {operation.status} {operation.note}"
        for operation in operations_of(history, Act.OPEN)
        if not operation.ok
    ]
