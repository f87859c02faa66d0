"""Index keys of conditions, such as a domain or a tag: who meets a condition has at least one of its keys."""

from typing import Final, TypeAlias, assert_never

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
from gatehouse.permissions.model.group import Group

IndexKey: TypeAlias = tuple[str, str]  # kind and value

ANYONE: Final[IndexKey] = ("everyone", "")


def key_text(key: IndexKey) -> str:
    """Return the key as it is stored."""
    kind, value = key
    return f"{kind}:{value}"


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


def _breadth(handles: frozenset[IndexKey]) -> tuple[bool, int]:
    return ANYONE in handles, len(handles)
