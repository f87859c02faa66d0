"""Applications as the console lists them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gatehouse.admin.paging import Page, PageRequest
from gatehouse.admin.visibility import Visibility


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationListItem:
    application_id: int
    name: str
    description: str
    project_id: str | None
    project: str | None  # its title
    removed: bool
    roles: int
    clients: int
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetProject:
    """A project that an application can be created in or moved to."""

    project_id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRemovalImpact:
    """What ends when an application is removed."""

    clients: int
    sign_ins: int  # their grants that are still valid
    access_keys: int
    service_tokens: int
    people: int  # who hold anything in it
    connected: int  # other projects that have connected it as a service
    connected_titles: tuple[str, ...]  # of those that the viewer may see


class ApplicationListStore(Protocol):
    async def applications(self, visibility: Visibility, page_request: PageRequest) -> Page[ApplicationListItem]:
        """Return a page of the visible applications by name; removed ones last."""

    async def target_projects(self, visibility: Visibility) -> Sequence[TargetProject]:
        """Return the projects whose applications the viewer manages, by title; the first few hundred."""

    async def removal_impact(self, application_id: int, visibility: Visibility, now: int) -> ApplicationRemovalImpact:
        """Return what ends when the application is removed."""
