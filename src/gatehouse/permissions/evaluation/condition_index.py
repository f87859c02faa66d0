"""Find the conditions that may hold for a person without testing every condition.

Each condition has index keys, such as a domain or a tag; a person who meets it has at least one of them. Of five
hundred groups only those that share a key with the person are tested.
"""

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeAlias, TypeVar, assert_never

from gatehouse.kernel.addresses import Address
from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.model.condition import (
    AllOf,
    AnyOf,
    ConditionTest,
    Domain,
    Everyone,
    FromNetwork,
    HasPurchase,
    HasTag,
    OneOfUsers,
)
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.role import Role

K = TypeVar("K", bound=Hashable)
IndexKey: TypeAlias = tuple[str, str]

ANYONE: Final[IndexKey] = ("everyone", "")
NO_ADDRESS: Final[Address | None] = None  # group conditions know no ip (interface §2.5)


class ConditionIndex(Generic[K]):
    """Owners of conditions by the index keys of the conditions."""

    def __init__(self, rows: Iterable[tuple[K, Iterable[IndexKey]]]) -> None:
        self._by_key: dict[IndexKey, list[K]] = {}
        for key, handles in rows:
            for handle in handles:
                self._by_key.setdefault(handle, []).append(key)

    def candidates(self, index_keys: Iterable[IndexKey]) -> set[K]:
        """All that may hold for a person with these keys; the conditions themselves must still be tested."""
        return {key for handle in index_keys for key in self._by_key.get(handle, ())}

    @property
    def index_keys(self) -> Iterable[IndexKey]:
        return self._by_key.keys()


def person_index_keys(facts: Facts) -> frozenset[IndexKey]:
    who = facts.subject
    return frozenset(
        {
            ANYONE,
            ("uid", who.user_id),
            *([("domain", who.domain)] if who.domain is not None else []),
            *(("tag", tag) for tag in who.tags),
            *(("purchase", purchase) for purchase in who.purchases),
            *(("group", group_id) for group_id in facts.groups),
        }
    )


def condition_index_keys(test: ConditionTest) -> frozenset[IndexKey]:  # noqa: PLR0911 - one a kind
    """A person who passes the test has one of these keys; without keys no one passes."""
    match test:
        case Domain(name):
            return frozenset({("domain", name)})
        case OneOfUsers(user_ids):
            return frozenset(("uid", user_id) for user_id in user_ids)
        case HasTag(tag):
            return frozenset({("tag", tag)})
        case HasPurchase(purchase):
            return frozenset({("purchase", purchase)})
        case FromNetwork():
            return frozenset({ANYONE})
        case Everyone(everyone):
            return frozenset({ANYONE}) if everyone else frozenset()
        case AllOf(parts):
            return min((condition_index_keys(part) for part in parts), key=_breadth)
        case AnyOf(parts):
            return frozenset().union(*(condition_index_keys(part) for part in parts))
        case _:
            assert_never(test)


def group_index_keys(group: Group) -> frozenset[IndexKey]:
    conditions = (condition_index_keys(condition.condition.test) for condition in group.conditions)
    return frozenset({("group", group.group_id)}).union(*conditions)


def is_member(group: Group, facts: Facts) -> bool:
    """Whether the person is listed or meets one of the group's conditions (R5)."""
    return group.group_id in facts.groups or any(
        condition_holds(condition.condition.test, facts.subject, NO_ADDRESS) for condition in group.conditions
    )


def meets_condition(role: Role, facts: Facts, address: Address | None) -> bool:
    """Whether the person meets the role's condition; True for a role without one."""
    return role.condition is None or condition_holds(role.condition.test, facts.subject, address)


def _breadth(handles: frozenset[IndexKey]) -> tuple[bool, int]:
    return ANYONE in handles, len(handles)
