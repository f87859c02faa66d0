"""The people who match a condition, counted while it is edited."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from gatehouse.admin.names import NamedPerson
from gatehouse.admin.paging import Page, PageRequest
from gatehouse.permissions.model.condition import ConditionTest
from gatehouse.permissions.model.project import Group

MAX_COUNT: Final = 10_000  # no more are counted
FIRST_FEW: Final = 5  # listed by name


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionMatch:
    """People who match if the address is left out; with an `ip` in the condition that is the maximum."""

    count: int
    first: Sequence[NamedPerson] = ()

    @property
    def is_beyond(self) -> bool:
        return self.count >= MAX_COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member of a group, and why."""

    user_id: str
    nick: str
    listed: bool
    conditions: tuple[str, ...]  # titles of those that the person meets


class ConditionMatchStore(Protocol):
    async def count_matches(self, test: ConditionTest) -> ConditionMatch:
        """Return how many people match, and the first few by id."""

    async def members_of_group(self, group: Group, page_request: PageRequest) -> Page[GroupMember]:
        """Return a page of a group's members by id, searched by nick or id; counted up to MAX_COUNT."""
