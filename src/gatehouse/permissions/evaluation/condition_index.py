"""Find the conditions that may hold for a person without testing every condition.

Of five hundred groups only those that share an index key with the person are tested (model/index_keys.py).
"""

from collections.abc import Hashable, Iterable
from typing import Final, Generic, TypeVar

from gatehouse.kernel.addresses import Address
from gatehouse.permissions.evaluation.conditions import condition_holds
from gatehouse.permissions.model.facts import Facts
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.index_keys import ANYONE, IndexKey
from gatehouse.permissions.model.role import Role

K = TypeVar("K", bound=Hashable)

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


def is_member(group: Group, facts: Facts) -> bool:
    """Whether the person is listed or meets one of the group's conditions (R5)."""
    return group.group_id in facts.groups or any(
        condition_holds(condition.condition.test, facts.subject, NO_ADDRESS) for condition in group.conditions
    )


def meets_condition(role: Role, facts: Facts, address: Address | None) -> bool:
    """Whether the person meets the role's condition; True for a role without one."""
    return role.condition is None or condition_holds(role.condition.test, facts.subject, address)
