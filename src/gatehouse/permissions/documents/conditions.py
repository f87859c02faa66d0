"""For whom a role or group applies: domain, uid, tag, ip, purchase, everyone, and, or (interface §2.7). Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

from gatehouse.kernel.addresses import Address, Network, contains, parse_network, unmapped_network
from gatehouse.permissions.documents.fields import read_flag, read_line, read_members, shown
from gatehouse.permissions.documents.grammar import parse_domain, parse_user_ids
from gatehouse.permissions.errors import Malformed

DEEPEST: Final = 16  # R5
NODES_MOST: Final = 256
USERS_MOST: Final = 1_000  # in one `uid`
NAME_LONGEST: Final = 255  # of a tag or a purchase


@dataclass(frozen=True, slots=True)
class Subject:
    """A person as conditions see him."""

    user_id: str
    domain: str | None = None  # of the login address, lower case, only while it is verified (R1)
    tags: frozenset[str] = frozenset()
    purchases: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Domain:
    name: str


@dataclass(frozen=True, slots=True)
class OneOfUsers:
    user_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class HasTag:
    tag: str


@dataclass(frozen=True, slots=True)
class FromNetwork:
    network: Network


@dataclass(frozen=True, slots=True)
class HasPurchase:
    purchase: str


@dataclass(frozen=True, slots=True)
class Everyone:
    holds: bool  # `everyone: false` holds for nobody


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple["Test", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple["Test", ...]


Test: TypeAlias = Domain | OneOfUsers | HasTag | FromNetwork | HasPurchase | Everyone | AllOf | AnyOf
NOBODY: Final = Everyone(holds=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """As it was written, which is what is stored and answered, and as it is decided."""

    document: Mapping[str, object]
    test: Test = field(compare=False)

    @property
    def looks_at_address(self) -> bool:
        return any(isinstance(test, FromNetwork) for test in tests_in(self.test))


def holds(test: Test, who: Subject, address: Address | None) -> bool:  # noqa: PLR0911 - one a kind
    """Without an address no network matches (R5)."""
    match test:
        case Domain(name):
            return who.domain == name
        case OneOfUsers(user_ids):
            return who.user_id in user_ids
        case HasTag(tag):
            return tag in who.tags
        case FromNetwork(network):
            return address is not None and contains((network,), address)
        case HasPurchase(purchase):
            return purchase in who.purchases
        case Everyone(everyone):
            return everyone
        case AllOf(parts):
            return all(holds(part, who, address) for part in parts)
        case AnyOf(parts):
            return any(holds(part, who, address) for part in parts)
        case _:
            assert_never(test)


def tests_in(test: Test) -> Iterator[Test]:
    """Every test in the tree, the outer ones first."""
    yield test
    if isinstance(test, AllOf | AnyOf):
        for part in test.parts:
            yield from tests_in(part)


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
