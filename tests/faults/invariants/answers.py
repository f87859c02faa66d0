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
class Recorded:
    """The fields of an audit record that a checker needs."""

    event: str
    request_id: str


def no_answer_blames_the_code(history: History) -> list[str]:
    """During a fault, responses are 503 with Retry-After; a 500 would be a bug."""
    return [
        f"R-04: {one.status} {one.note}: {describe(one)}"
        for one in history
        if one.status >= SERVER_ERROR and not (one.status == UNAVAILABLE and one.patient)
    ]


def answers_come_within(history: History, seconds: float) -> list[str]:
    return [
        f"R-08: {one.t1 - one.t0:.1f} seconds: {describe(one)} {one.status} {one.note}"
        for one in history
        if one.op is not Act.FAULT and one.t1 - one.t0 > seconds
    ]


def i8_one_record_for_each_change(history: History, records: Iterable[Recorded]) -> list[str]:
    """One record per acknowledged change, none per refused one, and at most one if the result is unknown."""
    kept = Counter((one.event, one.request_id) for one in records)
    problems = []
    for one in history:
        if not (one.event and one.request_id):
            continue
        times = kept[one.event, one.request_id]
        if (one.ok and times != 1) or (one.result is Result.FAIL and times) or times > 1:
            problems.append(f"I8: {times} records {one.event!r} of {describe(one)}, request {one.request_id}")
    return problems


def i13_figures_stay_bounded(history: History, mosts: Mapping[str, float]) -> list[str]:
    """`mosts` maps key prefixes to limits: resident bytes, descriptors, threads."""
    return [
        f"I13: {describe(one)}, at most {most}"
        for one in operations_of(history, Act.MEASURE)
        if (most := mosts.get(one.key.partition(":")[0])) is not None and float(one.value) > most
    ]


def i14_a_lost_answer_hides_no_half(history: History) -> list[str]:
    """A repeated request gets the same response, a conflict, or the error that the grant was used."""
    repeated: dict[int, list[Operation]] = {}
    for one in history:
        if one.repeats:
            repeated.setdefault(one.repeats, []).append(one)
    return [
        f"I14: {describe(one)}, and once more: {describe(again)} {again.status} {again.note}"
        for one in history
        for again in repeated.get(one.number, [])
        if not is_clean(again)
    ]


def is_clean(again: Operation) -> bool:
    return again.ok or (
        again.result is Result.FAIL and (again.status in CONFLICTS or again.note.startswith(INVALID_GRANT))
    )


def every_lost_answer_was_asked_for_again(history: History, acts: Sequence[Act]) -> list[str]:
    """Every lost request was repeated: without repetition, I14 would hold trivially."""
    answered = {one.repeats for one in history if one.repeats and one.result is not Result.INFO}
    return [
        f"I14: nothing asked again: {describe(one)}"
        for one in operations_of(history, *acts)
        if one.result is Result.INFO and not one.repeats and one.number not in answered
    ]
