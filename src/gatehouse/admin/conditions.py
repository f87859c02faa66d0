"""Whom a condition holds for, counted while it is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from gatehouse.admin.names import NamedPerson
from gatehouse.admin.paging import Page, PageRequest
from gatehouse.permissions.model.condition import ConditionTest
from gatehouse.permissions.model.project import Group

COUNT_MOST: Final = 10_000  # counted exactly
FIRST_FEW: Final = 5  # shown by name


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionMatch:
    """Whoever would match if he came from every address: with an `ip` in the condition that is the most there are."""

    count: int
    first: Sequence[NamedPerson] = ()

    @property
    def is_beyond(self) -> bool:
        return self.count >= COUNT_MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """Somebody who belongs to a group, and why."""

    user_id: str
    nick: str
    listed: bool
    conditions: tuple[str, ...]  # titles of those he meets


class ConditionMatchStore(Protocol):
    async def count_matches(self, test: ConditionTest) -> ConditionMatch:
        """How many there are, and the first few by id."""

    async def members_of_group(self, group: Group, wanted: PageRequest) -> Page[GroupMember]:
        """Everybody in a group by id, whose nick or id has what is searched; counted up to COUNT_MOST."""
