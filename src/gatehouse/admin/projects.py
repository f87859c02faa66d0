"""Projects as the console lists them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.paging import Page, PageRequest
from gatehouse.admin.visibility import Visibility


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectListItem:
    project_id: str
    title: str
    description: str
    removed: bool
    applications: int
    groups: int
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRemovalImpact:
    """What ends when a project is removed."""

    applications: int
    people: int  # who hold anything in it
    groups: int
    service_accounts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSummary:
    application_id: int
    name: str
    description: str
    project_id: str | None
    is_published: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListItem:
    group_id: str
    title: str
    description: str
    project_id: str


class ProjectListStore(Protocol):
    async def projects(self, visibility: Visibility, page_request: PageRequest) -> Page[ProjectListItem]:
        """Return a page of the projects that the viewer may view, by title; removed ones last."""

    async def removal_impact(self, project_id: str, now: int) -> ProjectRemovalImpact:
        """Return what ends when the project is removed."""

    async def applications(self, project_id: str) -> Sequence[ApplicationSummary]:
        """Return the project's applications that are not removed, by name."""

    async def applications_by_id(self, application_ids: Collection[int]) -> Mapping[int, ApplicationSummary]:
        """Return them, removed ones too."""

    async def published_applications(self) -> Sequence[ApplicationSummary]:
        """Return the services that every project may connect, by name; the first thousand."""

    async def groups(self, group_ids: Collection[str]) -> Sequence[GroupListItem]:
        """By title."""
