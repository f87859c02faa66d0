"""Conditions as requests, files and stored rows write them (interface §2.7)."""

from collections.abc import Callable, Mapping
from typing import Final

from gatehouse.kernel.addresses import Network, parse_network, unmapped_network
from gatehouse.permissions.documents.fields import read_flag, read_line, read_members, shown
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
)

DEEPEST: Final = 16  # R5
NODES_MOST: Final = 256
USERS_MOST: Final = 1_000  # in one `uid`
NAME_LONGEST: Final = 255  # of a tag or a purchase


def parse_condition(document: object, *, place: str = "condition", with_address: bool = True) -> Condition:
    """Read what a request or file says; raises Malformed. Group conditions know no address (interface §2.5)."""
    reader = _Reader(with_address=with_address)
    return Condition(_members(document, place), reader.read(document, place, depth=1))


def stored_condition(document: Mapping[str, object]) -> Condition:
    """What is read back; one that today's rules would refuse holds for nobody (S-22)."""
    try:
        return parse_condition(document)
    except Malformed:
        return Condition(document, NOBODY)


class _Reader:
    def __init__(self, *, with_address: bool) -> None:
        self._nodes = 0
        self._readers: dict[str, Callable[[object, str, int], Test]] = {
            "domain": lambda value, place, _: Domain(parse_domain(value, place)),
            "uid": lambda value, place, _: OneOfUsers(_user_ids(value, place)),
            "tag": lambda value, place, _: HasTag(_text(value, place)),
            "purchase": lambda value, place, _: HasPurchase(_text(value, place)),
            "everyone": lambda value, place, _: Everyone(read_flag(value, place)),
            "and": lambda value, place, depth: AllOf(self._parts(value, place, depth)),
            "or": lambda value, place, depth: AnyOf(self._parts(value, place, depth)),
        }
        if with_address:
            self._readers["ip"] = lambda value, place, _: FromNetwork(_network(value, place))

    def read(self, document: object, place: str, depth: int) -> Test:
        """All members of one object are required; one member stands for itself."""
        if depth > DEEPEST:
            raise Malformed(f"{place}: a condition nests at most {DEEPEST} levels")
        members = _members(document, place)
        tests = tuple(self._member(name, value, place, depth) for name, value in members.items())
        return tests[0] if len(tests) == 1 else AllOf(tests)

    def _member(self, name: str, value: object, place: str, depth: int) -> Test:
        self._nodes += 1
        if self._nodes > NODES_MOST:
            raise Malformed(f"{place}: a condition has at most {NODES_MOST} members in all")
        read = self._readers.get(name)
        if read is None:
            known = ", ".join(self._readers)
            raise Malformed(f"{place}.{shown(name)}: not allowed here; known are {known}")
        return read(value, f"{place}.{name}", depth)

    def _parts(self, value: object, place: str, depth: int) -> tuple[Test, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise Malformed(f"{place}: a list of at least one condition")
        return tuple(self.read(part, f"{place}[{index}]", depth + 1) for index, part in enumerate(value))


def _members(document: object, place: str) -> Mapping[str, object]:
    """An empty object is refused: it would hold for everyone, and nobody means that."""
    members = read_members(document, place)
    if not members:
        raise Malformed(f"{place}: an object with at least one member")
    return members


def _text(value: object, place: str) -> str:
    return read_line(value, place, NAME_LONGEST, shortest=1)


def _user_ids(value: object, place: str) -> frozenset[str]:
    user_ids = frozenset(parse_user_ids(value, place, USERS_MOST))
    if not user_ids:
        raise Malformed(f"{place}: at least one user id")
    return user_ids


def _network(value: object, place: str) -> Network:
    try:
        return unmapped_network(parse_network(_text(value, place)))
    except ValueError:
        raise Malformed(f"{place}: one network as CIDR, such as 10.0.0.0/8") from None
