"""Whether a condition holds for a person. Pure."""

from typing import assert_never

from gatehouse.kernel.addresses import Address, any_network_contains
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
)


def condition_holds(test: ConditionTest, who: ConditionSubject, address: Address | None) -> bool:  # noqa: PLR0911 - one a kind
    """Whether the condition holds for the person; without an address no network matches (R5)."""
    match test:
        case Domain(name):
            return who.domain == name
        case OneOfUsers(user_ids):
            return who.user_id in user_ids
        case HasTag(tag):
            return tag in who.tags
        case FromNetwork(network):
            return address is not None and any_network_contains((network,), address)
        case HasPurchase(purchase):
            return purchase in who.purchases
        case Everyone(everyone):
            return everyone
        case AllOf(parts):
            return all(condition_holds(part, who, address) for part in parts)
        case AnyOf(parts):
            return any(condition_holds(part, who, address) for part in parts)
        case _:
            assert_never(test)
