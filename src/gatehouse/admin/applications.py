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
    """A project that an application may be put into."""

    project_id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRemovalImpact:
    """What goes when an application is removed."""

    clients: int
    sign_ins: int  # living grants of these
    access_keys: int
    service_tokens: int
    people: int  # who hold anything in it
    connected: int  # other projects that have connected it as a service
    connected_titles: tuple[str, ...]  # of those he may see


class ApplicationListStore(Protocol):
    async def applications(self, visibility: Visibility, wanted: PageRequest) -> Page[ApplicationListItem]:
        """By name, those he holds something on or whose project's applications he manages; removed ones last."""

    async def target_projects(self, visibility: Visibility) -> Sequence[TargetProject]:
        """Projects into which he may put applications, by title; the first few hundred."""

    async def removal_impact(self, application_id: int, visibility: Visibility, now: int) -> ApplicationRemovalImpact:
        """What would end with it."""
