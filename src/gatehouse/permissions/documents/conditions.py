"""Conditions as requests, files and stored rows write them (interface §2.7)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from gatehouse.kernel.addresses import Network, parse_network, unmap_network
from gatehouse.permissions.documents.fields import printable, read_flag, read_line, read_list, read_members
from gatehouse.permissions.documents.grammar import parse_domain, parse_user_ids
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.condition import (
    HOLDS_FOR_NO_ONE,
    AllOf,
    AnyOf,
    Condition,
    ConditionTest,
    Domain,
    Everyone,
    FromNetwork,
    GroupCondition,
    HasPurchase,
    HasTag,
    OneOfUsers,
    condition_size,
)

ReadLeaf: TypeAlias = Callable[[object, str], ConditionTest]

MAX_CONDITION_DEPTH: Final = 16  # R5
MAX_CONDITION_MEMBERS: Final = 256
MAX_CONDITIONS: Final = 50  # of one group
MAX_CONDITION_TITLE_LENGTH: Final = 64
MAX_CONDITION_USERS: Final = 1_000  # named in one condition
MAX_TOTAL_USERS: Final = 10_000  # in the conditions of an application's roles, or of a project's groups
MAX_TOTAL_MEMBERS: Final = 5_000
MAX_NAME_LENGTH: Final = 255  # of a tag or a purchase
NETWORK_CACHE_SIZE: Final = 32_768  # parsing a network takes as long as parsing the rest of its condition


def parse_condition(document: object, place: str = "condition", *, with_address: bool = True) -> Condition:
    """Parse a condition of a request or file; raises Malformed. Group conditions have no address (interface §2.5)."""
    leaves = REQUEST_LEAVES if with_address else {name: read for name, read in REQUEST_LEAVES.items() if name != "ip"}
    test = _Reader(leaves).read(document, place, depth=1)
    if condition_size([test]).users > MAX_CONDITION_USERS:
        raise Malformed(f"{place}: a condition can name at most {MAX_CONDITION_USERS} users in total").on_screen(
            "condition_users", max_condition_users=MAX_CONDITION_USERS
        )
    return Condition(_members(document, place), test)


def condition_document(condition: Condition | None) -> Mapping[str, object] | None:
    """Return the condition as it was written."""
    return None if condition is None else condition.document


def read_conditions(document: Sequence[object], place: str) -> tuple[GroupCondition, ...]:
    """Read the conditions of a group with their titles; these cannot test the address (interface §2.5)."""
    return tuple(
        read_condition(element, f"{place}[{index}]")
        for index, element in enumerate(read_list(document, place, MAX_CONDITIONS))
    )


def read_condition(document: object, place: str) -> GroupCondition:
    members = read_members(document, place, ("title", "condition"))
    title = read_line(members.get("title"), f"{place}.title", MAX_CONDITION_TITLE_LENGTH, shortest=1)
    condition = parse_condition(members.get("condition"), f"{place}.condition", with_address=False)
    return GroupCondition(title=title, condition=condition)


def conditions_document(conditions: Sequence[GroupCondition]) -> list[dict[str, object]]:
    return [{"title": condition.title, "condition": condition.condition.document} for condition in conditions]


def stored_condition(document: Mapping[str, object]) -> Condition:
    """Return a stored condition; one that today's rules would refuse holds for no one (S-22).

    Its values were checked when it was saved: a model is read far more often than it is written.
    """
    try:
        return Condition(document, _Reader(STORED_LEAVES).read(document, "", depth=1))
    except Malformed:
        return Condition(document, HOLDS_FOR_NO_ONE)


def refuse_overgrown(before: Iterable[Condition], after: Iterable[Condition], *, what: str) -> None:
    """Limit the size of conditions, because decisions wait while they are loaded; fewer are always accepted."""
    old, new = (condition_size(condition.test for condition in conditions) for conditions in (before, after))
    if new.users > max(MAX_TOTAL_USERS, old.users):
        raise Malformed(f"the conditions of {what} can name at most {MAX_TOTAL_USERS} users in total").on_screen(
            "conditions_users", most=MAX_TOTAL_USERS
        )
    if new.members > max(MAX_TOTAL_MEMBERS, old.members):
        raise Malformed(f"the conditions of {what} can have at most {MAX_TOTAL_MEMBERS} members in total").on_screen(
            "conditions_members", most=MAX_TOTAL_MEMBERS
        )


class _Reader:
    def __init__(self, leaves: Mapping[str, ReadLeaf]) -> None:
        self._nodes = 0
        self._leaves = leaves

    def read(self, document: object, place: str, depth: int) -> ConditionTest:
        """Read an object, all members of which must hold; a single member is its own test."""
        if depth > MAX_CONDITION_DEPTH:
            raise Malformed(
                f"{place}: a condition can be nested at most {MAX_CONDITION_DEPTH} levels deep"
            ).on_screen("condition_depth", max_condition_depth=MAX_CONDITION_DEPTH)
        members = _members(document, place)
        tests = tuple(self._member(name, value, place, depth) for name, value in members.items())
        return tests[0] if len(tests) == 1 else AllOf(tests)

    def _member(self, name: str, value: object, place: str, depth: int) -> ConditionTest:
        self._nodes += 1
        if self._nodes > MAX_CONDITION_MEMBERS:
            raise Malformed(
                f"{place}: a condition can have at most {MAX_CONDITION_MEMBERS} members in total"
            ).on_screen("condition_members", max_condition_members=MAX_CONDITION_MEMBERS)
        if name in NESTED_TESTS:
            return NESTED_TESTS[name](self._parts(value, f"{place}.{name}", depth))
        if name not in self._leaves:
            known = ", ".join((*self._leaves, *NESTED_TESTS))
            raise Malformed(f"{place}.{printable(name)}: not allowed here; allowed are {known}")
        return self._leaves[name](value, f"{place}.{name}")

    def _parts(self, value: object, place: str, depth: int) -> tuple[ConditionTest, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise Malformed(f"{place}: must be a list of at least one condition")
        return tuple(self.read(part, f"{place}[{index}]", depth + 1) for index, part in enumerate(value))


def _members(document: object, place: str) -> Mapping[str, object]:
    """Return the members of an object; an empty one is refused, because it would hold for everyone."""
    members = read_members(document, place)
    if not members:
        raise Malformed(f"{place}: must be an object with at least one member")
    return members


def _text(value: object, place: str) -> str:
    return read_line(value, place, MAX_NAME_LENGTH, shortest=1)


def _users(value: object, place: str) -> OneOfUsers:
    user_ids = parse_user_ids(value, place, MAX_CONDITION_USERS)
    if not user_ids:
        raise Malformed(f"{place}: must have at least one user ID").on_screen("user_ids")
    return OneOfUsers(frozenset(user_ids), listed_count=len(read_list(value, place, MAX_CONDITION_USERS)))


def _network(value: str, place: str) -> Network:
    try:
        return _cached_network(value)
    except ValueError:
        raise Malformed(f"{place}: must be one network in CIDR notation, such as 10.0.0.0/8").on_screen(
            "one_network"
        ) from None


@lru_cache(NETWORK_CACHE_SIZE)
def _cached_network(text: str) -> Network:
    """Parse a network; cached for the loading of models and never invalid, because parsing is pure."""
    return unmap_network(parse_network(text))


def _stored_text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise Malformed(f"{place}: text")
    return value


def _stored_users(value: object, place: str) -> OneOfUsers:
    if not isinstance(value, list | tuple) or set(map(type, value)) != {str}:
        raise Malformed(f"{place}: must be a list of user IDs")
    return OneOfUsers(frozenset(value), listed_count=len(value))


NESTED_TESTS: Final[Mapping[str, Callable[[tuple[ConditionTest, ...]], ConditionTest]]] = {"and": AllOf, "or": AnyOf}
REQUEST_LEAVES: Final[Mapping[str, ReadLeaf]] = {
    "domain": lambda value, place: Domain(parse_domain(value, place)),
    "uid": _users,
    "tag": lambda value, place: HasTag(_text(value, place)),
    "purchase": lambda value, place: HasPurchase(_text(value, place)),
    "everyone": lambda value, place: Everyone(read_flag(value, place)),
    "ip": lambda value, place: FromNetwork(_network(_text(value, place), place)),
}
STORED_LEAVES: Final[Mapping[str, ReadLeaf]] = {
    "everyone": REQUEST_LEAVES["everyone"],
    "domain": lambda value, place: Domain(_stored_text(value, place).lower()),
    "uid": _stored_users,
    "tag": lambda value, place: HasTag(_stored_text(value, place)),
    "purchase": lambda value, place: HasPurchase(_stored_text(value, place)),
    "ip": lambda value, place: FromNetwork(_network(_stored_text(value, place), place)),
}
