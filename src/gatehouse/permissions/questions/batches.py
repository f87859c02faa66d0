"""Evaluates many people, a few at a time, off the event loop, so that other heavy work runs in between."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final, TypeVar

from gatehouse.kernel.background import run_off_loop
from gatehouse.permissions.evaluation.work import record_work
from gatehouse.permissions.model.facts import Facts

T = TypeVar("T")

BATCH_WEIGHT: Final = 50_000  # of the people evaluated at a time
PERSON_WEIGHT: Final = 300  # of a person, whatever they hold
ROLE_WEIGHT: Final = 5  # of an assignment or an entry in a record


def person_weight(facts: Facts) -> int:
    """How much work it is to answer a single question about the person."""
    return PERSON_WEIGHT + ROLE_WEIGHT * sum(map(record_work, facts.records.values()))


async def judge_in_batches(
    people: Sequence[Facts], judge: Callable[[Facts], T], weigh: Callable[[Facts], int] = person_weight
) -> AsyncIterator[tuple[Facts, T]]:
    """Each person with the result of `judge`, in order; a consumer that stops early skips the rest."""
    for weight, piece in weighted_batches(people, weigh):
        for facts, verdict in zip(piece, await run_off_loop(weight, judge_all, piece, judge), strict=True):
            yield facts, verdict


def weighted_batches(people: Sequence[Facts], weigh: Callable[[Facts], int]) -> Iterator[tuple[int, list[Facts]]]:
    piece: list[Facts] = []
    total = 0
    for facts in people:
        weight = weigh(facts)
        if piece and total + weight > BATCH_WEIGHT:
            yield total, piece
            piece, total = [], 0
        piece.append(facts)
        total += weight
    if piece:
        yield total, piece


def judge_all(people: Sequence[Facts], judge: Callable[[Facts], T]) -> list[T]:
    return [judge(facts) for facts in people]
