"""What of the installation somebody sees in the console."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Visibility:
    everything: bool = False  # can_administer
    projects: frozenset[str] = frozenset()  # ids of those he may view
    managed: frozenset[str] = frozenset()  # of those whose applications he manages
    applications: frozenset[int] = frozenset()  # ids of those he holds something on, or manages in a project
    groups: frozenset[str] = frozenset()  # ids of those he manages
    may_publish: bool = False
    may_create: bool = False  # applications outside a project

    @property
    def has_any(self) -> bool:
        held = self.projects or self.managed or self.applications or self.groups
        return self.everything or bool(held) or self.may_publish or self.may_create


class VisibilityStore(Protocol):
    async def own_applications(self, user_id: str) -> Collection[int]:
        """Ids of the applications in which the user's own record has secret_data."""

    async def applications_in(self, projects: Collection[str]) -> Collection[int]:
        """Ids of those in these projects that are not removed."""
