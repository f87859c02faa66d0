"""Roles of every application as the console lists them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.names import NamedApplication
from gatehouse.admin.paging import Page, PageRequest
from gatehouse.permissions.model.condition import Condition
from gatehouse.permissions.model.rules import ConditionMode


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleVisibility:
    """The applications whose roles the viewer sees."""

    everything: bool = False
    named: frozenset[int] = frozenset()  # names and descriptions only
    readable: frozenset[int] = frozenset()  # everything
    editable: frozenset[int] = frozenset()

    def may_read(self, application_id: int) -> bool:
        return self.everything or application_id in self.readable

    @property
    def may_save(self) -> bool:
        return self.everything or bool(self.editable)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleListItem:
    application_id: int
    application: str
    name: str
    description: str
    protected: bool
    default: bool
    condition: Condition | None
    condition_mode: ConditionMode
    user_limit: int
    holders: int  # people it is assigned to now, anywhere in the application
    readable: bool  # whether the viewer sees more than name and description


class RoleListStore(Protocol):
    async def roles(
        self, visibility: RoleVisibility, page_request: PageRequest, *, application_id: int, now: int
    ) -> Page[RoleListItem]:
        """Return a page of roles by application and name; an `application_id` of 0 means all applications."""

    async def applications(self, visibility: RoleVisibility, *, editable: bool) -> Sequence[NamedApplication]:
        """Return the applications whose roles the viewer sees, or may edit, by name; the first thousand."""

    async def applications_in_projects(self, projects: Collection[str]) -> Collection[int]:
        """Return the ids of the applications in these projects that are not removed."""
