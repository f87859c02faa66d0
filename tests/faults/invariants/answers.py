"""Error responses during faults, and the results of repeated requests (I8, I13, I14)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.faults.history import Act, History, Operation, Result, describe, operations_of

CONFLICTS: Final = (404, 409)
INVALID_GRANT: Final = "invalid_grant"
UNAVAILABLE: Final = 503
SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFields:
    """The fields of an audit record that a checker needs."""

    event: str
    request_id: str


def no_answer_blames_the_code(history: History) -> list[str]:
    """During a fault, responses are 503 with Retry-After; a 500 would be a bug."""
    return [
        f"R-04: {operation.status} {operation.note}: {describe(operation)}"
        for operation in history
        if operation.status >= SERVER_ERROR and not (operation.status == UNAVAILABLE and operation.patient)
    ]


def answers_come_within(history: History, seconds: float) -> list[str]:
    return [
        f"R-08: {operation.t1 - operation.t0:.1f} seconds: {describe(operation)} {operation.status} {operation.note}"
        for operation in history
        if operation.op is not Act.FAULT and operation.t1 - operation.t0 > seconds
    ]


def i8_one_record_for_each_change(history: History, records: Iterable[RecordFields]) -> list[str]:
    """One record per acknowledged change, none per refused one, and at most one if the result is unknown."""
    counts = Counter((record.event, record.request_id) for record in records)
    problems = []
    for operation in history:
        if not (operation.event and operation.request_id):
            continue
        times = counts[operation.event, operation.request_id]
        if (operation.ok and times != 1) or (operation.result is Result.FAIL and times) or times > 1:
            problems.append(
                f"I8: {times} records {operation.event!r} of {describe(operation)}, request {operation.request_id}"
            )
    return problems


def i13_figures_stay_bounded(history: History, mosts: Mapping[str, float]) -> list[str]:
    """`mosts` maps key prefixes to limits: resident bytes, descriptors, threads."""
    return [
        f"I13: {describe(operation)}, at most {most}"
        for operation in operations_of(history, Act.MEASURE)
        if (most := mosts.get(operation.key.partition(":")[0])) is not None and float(operation.value) > most
    ]


def i14_a_lost_answer_hides_no_half(history: History) -> list[str]:
    """A repeated request gets the same response, a conflict, or the error that the grant was used."""
    repeated: dict[int, list[Operation]] = {}
    for op in history:
        if op.repeats:
            repeated.setdefault(op.repeats, []).append(op)
    return [
        f"I14: {describe(operation)}, and once more: {describe(again)} {again.status} {again.note}"
        for operation in history
        for again in repeated.get(operation.number, [])
        if not is_clean(again)
    ]


def is_clean(again: Operation) -> bool:
    return again.ok or (
        again.result is Result.FAIL and (again.status in CONFLICTS or again.note.startswith(INVALID_GRANT))
    )


def every_lost_answer_was_asked_for_again(history: History, acts: Sequence[Act]) -> list[str]:
    """Every lost request was repeated: without repetition, I14 would hold trivially."""
    answered = {
        operation.repeats for operation in history if operation.repeats and operation.result is not Result.INFO
    }
    return [
        f"I14: nothing asked again: {describe(operation)}"
        for operation in operations_of(history, *acts)
        if operation.result is Result.INFO and not operation.repeats and operation.number not in answered
    ]
