"""Which part of a condition does not hold, and what is the case instead."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

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
    OneOfUsers,
    Subject,
    Test,
)


@dataclass(frozen=True, slots=True)
class FailedTest:
    member: str  # of the condition, as it is written
    wanted: str
    actual: str  # "" when there is nothing of the kind


def failures(test: Test, who: Subject, address: Address | None) -> Iterator[FailedTest]:
    """Nothing for a test that holds."""
    if holds(test, who, address):
        return
    match test:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from failures(part, who, address)
        case Domain(name):
            yield FailedTest("domain", name, who.domain or "")
        case OneOfUsers(user_ids):
            yield FailedTest("uid", ", ".join(sorted(user_ids)), who.user_id)
        case HasTag(tag):
            yield FailedTest("tag", tag, ", ".join(sorted(who.tags)))
        case FromNetwork(network):
            yield FailedTest("ip", str(network), "" if address is None else str(address))
        case HasPurchase(purchase):
            yield FailedTest("purchase", purchase, ", ".join(sorted(who.purchases)))
        case Everyone():
            yield FailedTest("everyone", "nobody", who.user_id)
        case _:
            assert_never(test)
