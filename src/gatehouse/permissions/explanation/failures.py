"""Which part of a condition does not hold, and what is the case instead."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final, assert_never

from gatehouse.kernel.addresses import Address
from gatehouse.permissions.evaluation.conditions import holds
from gatehouse.permissions.model.condition import (
    AllOf,
    AnyOf,
    Domain,
    Everyone,
    FromNetwork,
    HasPurchase,
    HasTag,
    Leaf,
    OneOfUsers,
    Subject,
    Test,
)

USERS_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class FailedTest:
    member: str  # of the condition, as it is written
    wanted: str
    actual: str  # "" when there is nothing of the kind


def failures(test: Test, who: Subject, address: Address | None) -> Iterator[FailedTest]:
    """Nothing for a test that holds."""
    if not holds(test, who, address):
        yield from _failures(test, who, address)


def _failures(test: Test, who: Subject, address: Address | None) -> Iterator[FailedTest]:
    """Of a test that is known not to hold."""
    match test:
        case AllOf(parts):
            for part in parts:
                yield from failures(part, who, address)
        case AnyOf(parts):
            for part in parts:
                yield from _failures(part, who, address)
        case _:
            yield _failure(test, who, address)


def _failure(test: Leaf, who: Subject, address: Address | None) -> FailedTest:
    match test:
        case Domain(name):
            return FailedTest("domain", name, who.domain or "")
        case OneOfUsers(user_ids):
            return FailedTest("uid", _shortly(user_ids), who.user_id)
        case HasTag(tag):
            return FailedTest("tag", tag, ", ".join(sorted(who.tags)))
        case FromNetwork(network):
            return FailedTest("ip", str(network), "" if address is None else str(address))
        case HasPurchase(purchase):
            return FailedTest("purchase", purchase, ", ".join(sorted(who.purchases)))
        case Everyone():
            return FailedTest("everyone", "nobody", who.user_id)
        case _:
            assert_never(test)


def _shortly(user_ids: frozenset[str]) -> str:
    """The first of them: nobody reads a thousand."""
    shown = ", ".join(nsmallest(USERS_SHOWN, user_ids))
    more = len(user_ids) - USERS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
