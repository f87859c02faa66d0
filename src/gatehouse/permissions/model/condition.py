"""For whom a role or group applies: domain, uid, tag, ip, purchase, everyone, and, or (interface §2.7)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from gatehouse.kernel.addresses import Network


@dataclass(frozen=True, slots=True)
class ConditionSubject:
    """A person as conditions see them."""

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
    listed_count: int = field(compare=False)  # how many ids are written, which is what is stored: repeated ones count


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
    holds: bool  # `everyone: false` holds for no one


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple["ConditionTest", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple["ConditionTest", ...]


SimpleTest: TypeAlias = Domain | OneOfUsers | HasTag | FromNetwork | HasPurchase | Everyone
ConditionTest: TypeAlias = SimpleTest | AllOf | AnyOf
HOLDS_FOR_NO_ONE: Final = Everyone(holds=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as a document, which is stored and returned, and as a test, which decides."""

    document: Mapping[str, object]
    test: ConditionTest = field(compare=False)

    @property
    def uses_address(self) -> bool:
        return any(isinstance(test, FromNetwork) for test in tests_in(self.test))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCondition:
    title: str
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionSize:
    """How much there is to read and to decide."""

    members: int
    users: int  # named by id, as often as they are written


def condition_size(tests: Iterable[ConditionTest]) -> ConditionSize:
    each = [part for test in tests for part in tests_in(test)]
    return ConditionSize(
        members=len(each), users=sum(one.listed_count for one in each if isinstance(one, OneOfUsers))
    )


def tests_in(test: ConditionTest) -> Iterator[ConditionTest]:
    """Every test in the tree, the outer ones first."""
    yield test
    if isinstance(test, AllOf | AnyOf):
        for part in test.parts:
            yield from tests_in(part)
