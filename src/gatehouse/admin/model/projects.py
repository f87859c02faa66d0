"""Projects as the console lists them."""

from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.admin.model.sight import Sight


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectLine:
    project_id: str
    title: str
    description: str
    removed: bool
    applications: int
    groups: int
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectBreaks:
    """What goes when a project is removed."""

    applications: int
    people: int  # who hold anything in it
    groups: int
    service_accounts: int


class ProjectListStore(Protocol):
    async def projects(self, sight: Sight, wanted: Wanted) -> Page[ProjectLine]:
        """By title, those he may view; removed ones last."""

    async def breaks(self, project_id: str, now: int) -> ProjectBreaks:
        """What would end with it."""
