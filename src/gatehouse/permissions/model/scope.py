"""Where a role or rule is held: at the root, in a project, or on a resource of a project (R5)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ResourceKind(StrEnum):
    """The word is the one of the wire: `P/applications/A/`."""

    APPLICATION = "applications"
    SERVICE = "services"
    GROUP = "groups"


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Decisions compare these, never joined strings (S-21)."""

    project_id: str = ""  # "" at the root
    kind: ResourceKind | None = None
    resource_id: str = ""

    @property
    def is_root(self) -> bool:
        return not self.project_id

    @property
    def project(self) -> "Scope":
        """The project around a resource: what is held there counts on every resource of it."""
        return Scope(self.project_id)


ROOT: Final = Scope()


def application_scope(project_id: str, application_id: int) -> Scope:
    return Scope(project_id, ResourceKind.APPLICATION, str(application_id))


def service_scope(project_id: str, application_id: int) -> Scope:
    return Scope(project_id, ResourceKind.SERVICE, str(application_id))


def group_scope(project_id: str, group_id: str) -> Scope:
    return Scope(project_id, ResourceKind.GROUP, group_id)
