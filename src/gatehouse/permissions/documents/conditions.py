"""Conditions as requests, files and stored rows write them (interface §2.7)."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from gatehouse.kernel.addresses import Network, parse_network, unmapped_network
from gatehouse.permissions.documents.fields import read_flag, read_line, read_list, read_members, shown
from gatehouse.permissions.documents.grammar import parse_domain, parse_user_ids
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.condition import (
    NOBODY,
    AllOf,
    AnyOf,
    Condition,
    Domain,
    Everyone,
    FromNetwork,
    HasPurchase,
    HasTag,
    OneOfUsers,
    Test,
    size_of,
)

ReadLeaf: TypeAlias = Callable[[object, str], Test]

DEEPEST: Final = 16  # R5
NODES_MOST: Final = 256
USERS_MOST: Final = 1_000  # named in one condition
USERS_MOST_IN_ALL: Final = 10_000  # in the conditions of an application's roles, or of a project's groups
MEMBERS_MOST_IN_ALL: Final = 5_000
NAME_LONGEST: Final = 255  # of a tag or a purchase
NETWORKS_KEPT: Final = 32_768  # to read a network takes as long as to read everything around it


def parse_condition(document: object, *, place: str = "condition", with_address: bool = True) -> Condition:
    """Read what a request or file says; raises Malformed. Group conditions know no address (interface §2.5)."""
    leaves = WRITTEN if with_address else {name: read for name, read in WRITTEN.items() if name != "ip"}
    test = _Reader(leaves).read(document, place, depth=1)
    if size_of([test]).users > USERS_MOST:
        raise Malformed(f"{place}: a condition can name at most {USERS_MOST} users in total")
    return Condition(_members(document, place), test)


def stored_condition(document: Mapping[str, object]) -> Condition:
    """What is read back; one whose shape today's rules would refuse holds for nobody (S-22).

    The words in it were judged when it was saved: a model is read far more often than it is written.
    """
    try:
        return Condition(document, _Reader(STORED).read(document, "", depth=1))
    except Malformed:
        return Condition(document, NOBODY)


def refuse_overgrown(before: Iterable[Condition], after: Iterable[Condition], *, what: str) -> None:
    """Everybody's decisions wait while these are read, so there is an end to them; fewer are always welcome."""
    old, new = (size_of(one.test for one in conditions) for conditions in (before, after))
    if new.users > max(USERS_MOST_IN_ALL, old.users):
        raise Malformed(f"the conditions of {what} can name at most {USERS_MOST_IN_ALL} users in total")
    if new.members > max(MEMBERS_MOST_IN_ALL, old.members):
        raise Malformed(f"the conditions of {what} can have at most {MEMBERS_MOST_IN_ALL} members in total")


class _Reader:
    def __init__(self, leaves: Mapping[str, ReadLeaf]) -> None:
        self._nodes = 0
        self._leaves = leaves

    def read(self, document: object, place: str, depth: int) -> Test:
        """All members of one object are required; one member stands for itself."""
        if depth > DEEPEST:
            raise Malformed(f"{place}: a condition can be nested at most {DEEPEST} levels deep")
        members = _members(document, place)
        tests = tuple(self._member(name, value, place, depth) for name, value in members.items())
        return tests[0] if len(tests) == 1 else AllOf(tests)

    def _member(self, name: str, value: object, place: str, depth: int) -> Test:
        self._nodes += 1
        if self._nodes > NODES_MOST:
            raise Malformed(f"{place}: a condition can have at most {NODES_MOST} members in total")
        if name in NESTING:
            return NESTING[name](self._parts(value, f"{place}.{name}", depth))
        if name not in self._leaves:
            known = ", ".join((*self._leaves, *NESTING))
            raise Malformed(f"{place}.{shown(name)}: not allowed here; allowed are {known}")
        return self._leaves[name](value, f"{place}.{name}")

    def _parts(self, value: object, place: str, depth: int) -> tuple[Test, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise Malformed(f"{place}: must be a list of at least one condition")
        return tuple(self.read(part, f"{place}[{index}]", depth + 1) for index, part in enumerate(value))


def _members(document: object, place: str) -> Mapping[str, object]:
    """An empty object is refused: it would hold for everyone, and nobody means that."""
    members = read_members(document, place)
    if not members:
        raise Malformed(f"{place}: must be an object with at least one member")
    return members


def _text(value: object, place: str) -> str:
    return read_line(value, place, NAME_LONGEST, shortest=1)


def _users(value: object, place: str) -> OneOfUsers:
    user_ids = parse_user_ids(value, place, USERS_MOST)
    if not user_ids:
        raise Malformed(f"{place}: must have at least one user ID")
    return OneOfUsers(frozenset(user_ids), listed=len(read_list(value, place, USERS_MOST)))


def _network(value: str, place: str) -> Network:
    try:
        return _network_of(value)
    except ValueError:
        raise Malformed(f"{place}: must be one network in CIDR notation, such as 10.0.0.0/8") from None


@lru_cache(NETWORKS_KEPT)
def _network_of(text: str) -> Network:
    return unmapped_network(parse_network(text))


def _stored_text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise Malformed(f"{place}: text")
    return value


def _stored_users(value: object, place: str) -> OneOfUsers:
    if not isinstance(value, list | tuple) or set(map(type, value)) != {str}:
        raise Malformed(f"{place}: must be a list of user IDs")
    return OneOfUsers(frozenset(value), listed=len(value))


NESTING: Final[Mapping[str, Callable[[tuple[Test, ...]], Test]]] = {"and": AllOf, "or": AnyOf}
WRITTEN: Final[Mapping[str, ReadLeaf]] = {
    "domain": lambda value, place: Domain(parse_domain(value, place)),
    "uid": _users,
    "tag": lambda value, place: HasTag(_text(value, place)),
    "purchase": lambda value, place: HasPurchase(_text(value, place)),
    "everyone": lambda value, place: Everyone(read_flag(value, place)),
    "ip": lambda value, place: FromNetwork(_network(_text(value, place), place)),
}
STORED: Final[Mapping[str, ReadLeaf]] = {
    "everyone": WRITTEN["everyone"],
    "domain": lambda value, place: Domain(_stored_text(value, place).lower()),
    "uid": _stored_users,
    "tag": lambda value, place: HasTag(_stored_text(value, place)),
    "purchase": lambda value, place: HasPurchase(_stored_text(value, place)),
    "ip": lambda value, place: FromNetwork(_network(_stored_text(value, place), place)),
}
