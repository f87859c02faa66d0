"""Roles of every application as the console lists them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.names import NamedApplication
from gatehouse.admin.paging import Page, PageRequest
from gatehouse.permissions.model.condition import Condition
from gatehouse.permissions.model.rules import ConditionMode


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleVisibility:
    """Of which applications somebody sees the roles."""

    everything: bool = False
    named: frozenset[int] = frozenset()  # their names and descriptions
    readable: frozenset[int] = frozenset()  # all about them
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
    readable: bool  # whether whoever asks may see more than name and description


class RoleListStore(Protocol):
    async def roles(
        self, visibility: RoleVisibility, wanted: PageRequest, *, application_id: int, now: int
    ) -> Page[RoleListItem]:
        """By application and name; those of one application when it is not 0."""

    async def applications(self, visibility: RoleVisibility, *, editable: bool) -> Sequence[NamedApplication]:
        """Those whose roles he sees or edits, by name; the first thousand."""

    async def applications_in_projects(self, project_ids: Sequence[str]) -> Sequence[int]:
        """Ids of those in these projects."""
