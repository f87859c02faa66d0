"""People and their roles in one application, as the console's table shows them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.model.paging import Page, PageRequest
from gatehouse.permissions.model.rule import End
from gatehouse.permissions.model.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignablePerson:
    user_id: str
    nick: str
    login: str | None
    is_service: bool
    blocked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentPeopleQuery:
    """Those of whom something is written in the application, and whoever is named by his whole id.

    `everyone`: also all the others, who then are found by a part of their names too. Addresses find nobody, unless it
    is said how.
    """

    wanted: PageRequest
    everyone: bool = False
    by_address: bool = False  # anybody, by the whole address
    by_part_of_login: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentListItem:
    user_id: str
    nick: str
    role: str  # its name
    scope: Scope
    end: End


class AssignmentListStore(Protocol):
    async def people(self, application_id: int, query: AssignmentPeopleQuery) -> Page[AssignablePerson]:
        """By nick; a list of more than a thousand that nobody searched for, by id."""

    async def people_by_id(self, user_ids: Collection[str]) -> Mapping[str, AssignablePerson]:
        """Those of them that exist, by id."""

    async def find_user_ids(self, names: Collection[str], *, by_address: bool) -> Mapping[str, str]:
        """Ids of those whose id or, `by_address`, login address this is, by what they were called."""

    async def assignments(self, application_id: int, most: int) -> Sequence[AssignmentListItem]:
        """Every role that is given to somebody, ended ones too, by nick."""
