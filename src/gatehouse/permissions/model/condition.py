"""For whom a role or group applies: domain, uid, tag, ip, purchase, everyone, and, or (interface §2.7)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from gatehouse.kernel.addresses import Network


class ConditionSubject(Struct, frozen=True):
    """A person as conditions see them."""

    user_id: str
    domain: str | None = None  # of the login address, lower case, only while it is verified (R1)
    tags: frozenset[str] = frozenset()
    purchases: frozenset[str] = frozenset()


class Domain(Struct, frozen=True):
    name: str


class OneOfUsers(Struct, frozen=True):
    user_ids: frozenset[str]
    listed_count: int  # how many ids are written, which is what is stored: repeated ones count


class HasTag(Struct, frozen=True):
    tag: str


class FromNetwork(Struct, frozen=True):
    network: Network


class HasPurchase(Struct, frozen=True):
    purchase: str


class Everyone(Struct, frozen=True):
    holds: bool  # `everyone: false` holds for no one


class AllOf(Struct, frozen=True):
    parts: tuple["ConditionTest", ...]


class AnyOf(Struct, frozen=True):
    parts: tuple["ConditionTest", ...]


SimpleTest: TypeAlias = Domain | OneOfUsers | HasTag | FromNetwork | HasPurchase | Everyone
ConditionTest: TypeAlias = SimpleTest | AllOf | AnyOf
HOLDS_FOR_NO_ONE: Final = Everyone(holds=False)


class Condition(Struct, frozen=True):
    """A condition as a document, which is stored and returned, and as a test, which decides."""

    document: Mapping[str, object]
    test: ConditionTest

    @property
    def uses_address(self) -> bool:
        return any(isinstance(test, FromNetwork) for test in tests_in(self.test))


class GroupCondition(Struct, frozen=True, kw_only=True):
    title: str
    condition: Condition


class ConditionSize(Struct, frozen=True, kw_only=True):
    """How much there is to read and to decide."""

    members: int
    users: int  # named by id, as often as they are written


def condition_size(tests: Iterable[ConditionTest]) -> ConditionSize:
    each = [part for test in tests for part in tests_in(test)]
    return ConditionSize(
        members=len(each), users=sum(test.listed_count for test in each if isinstance(test, OneOfUsers))
    )


def tests_in(test: ConditionTest) -> Iterator[ConditionTest]:
    """Every test in the tree, the outer ones first."""
    yield test
    if isinstance(test, AllOf | AnyOf):
        for part in test.parts:
            yield from tests_in(part)
