"""Which part of a condition does not hold, and the actual value."""

from collections.abc import Iterator
from heapq import nsmallest
from typing import Final, assert_never

from msgspec import Struct

from gatehouse.kernel.addresses import Address
from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.model.condition import (
    AllOf,
    AnyOf,
    ConditionSubject,
    ConditionTest,
    Domain,
    Everyone,
    FromNetwork,
    HasPurchase,
    HasTag,
    OneOfUsers,
    SimpleTest,
)

MAX_USERS_SHOWN: Final = 10


class FailedTest(Struct, frozen=True):
    member: str  # of the condition, as it is written
    wanted: str
    actual: str  # "" when there is nothing of the kind


def failed_tests(test: ConditionTest, who: ConditionSubject, address: Address | None) -> Iterator[FailedTest]:
    """Return the failed tests of a condition; none if it holds."""
    if not condition_holds(test, who, address):
        yield from _failed_parts(test, who, address)


def _failed_parts(test: ConditionTest, who: ConditionSubject, address: Address | None) -> Iterator[FailedTest]:
    """Yield the failed parts of a test that does not hold."""
    match test:
        case AllOf(parts):
            for part in parts:
                yield from failed_tests(part, who, address)
        case AnyOf(parts):
            for part in parts:
                yield from _failed_parts(part, who, address)
        case _:
            yield failed_test(test, who, address)


def failed_test(test: SimpleTest, who: ConditionSubject, address: Address | None) -> FailedTest:
    """Return what the test wants and what is the case."""
    match test:
        case Domain(name):
            return FailedTest("domain", name, who.domain or "")
        case OneOfUsers(user_ids):
            return FailedTest("uid", _shorten_user_ids(user_ids), who.user_id)
        case HasTag(tag):
            return FailedTest("tag", tag, ", ".join(sorted(who.tags)))
        case FromNetwork(network):
            return FailedTest("ip", str(network), "" if address is None else str(address))
        case HasPurchase(purchase):
            return FailedTest("purchase", purchase, ", ".join(sorted(who.purchases)))
        case Everyone():
            return FailedTest("everyone", "no one", who.user_id)
        case _:
            assert_never(test)


def _shorten_user_ids(user_ids: frozenset[str]) -> str:
    """The first few of them."""
    shown = ", ".join(nsmallest(MAX_USERS_SHOWN, user_ids))
    more = len(user_ids) - MAX_USERS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
