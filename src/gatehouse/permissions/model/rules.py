"""Scopes, rules and entries (interface §2.7 to §2.9, R5)."""

from enum import StrEnum
from typing import Final

from msgspec import Struct


class ResourceKind(StrEnum):
    """The kind of a resource, with its name on the wire: `P/applications/A/`."""

    APPLICATION = "applications"
    SERVICE = "services"
    GROUP = "groups"


class Scope(Struct, frozen=True, order=True):
    """A place in which rules are held; decisions compare scopes, never joined strings (S-21)."""

    project_id: str = ""  # "" at the root
    kind: ResourceKind | None = None
    resource_id: str = ""

    @property
    def is_root(self) -> bool:
        return not self.project_id

    @property
    def project(self) -> "Scope":
        """The project of a resource: rules held there count on every resource of it."""
        return Scope(self.project_id)


ROOT: Final = Scope()


def scope_order(scope: Scope) -> tuple[str, str, str]:
    return scope.project_id, scope.kind or "", scope.resource_id


def application_scope(project_id: str, application_id: int) -> Scope:
    return Scope(project_id, ResourceKind.APPLICATION, str(application_id))


def service_scope(project_id: str, application_id: int) -> Scope:
    return Scope(project_id, ResourceKind.SERVICE, str(application_id))


def group_scope(project_id: str, group_id: str) -> Scope:
    return Scope(project_id, ResourceKind.GROUP, group_id)


# A rule: one leaf of a schema, and its entries (interface §2.7 to §2.9).


PROJECT_ACCESS: Final = "projectAccess"  # the part of private_data that holds what is assigned in projects
# Never the first segment of a path: list_short and check would read it as a section (R5, checklist RO-22).
RESERVED_SEGMENTS: Final = frozenset({PROJECT_ACCESS, "private_data", "public_data", "secret_data"})


class RuleSection(StrEnum):
    PRIVATE = "private_data"
    PUBLIC = "public_data"


class Rule(Struct, frozen=True, order=True):
    section: RuleSection
    path: str  # "user.kick"; segments hold no dot, so the text is unambiguous

    def __str__(self) -> str:
        return f"{self.section}.{self.path}"


class RuleDefinition(Struct, frozen=True, kw_only=True):
    """A rule's entry in an application's schema."""

    value: bool = False
    protected: bool = False
    description: str = ""


class End(Struct, frozen=True, kw_only=True):
    """The end of an assignment or entry. With a `ttl`, `expired` is ignored (interface §2.7)."""

    expired: int = 0  # Unix seconds; 0 is no end
    ttl: int = 0  # seconds from when a list is made; the entry itself never ends by it

    def is_past(self, now: int) -> bool:
        return not self.ttl and 0 < self.expired <= now

    def ends_at(self, now: int) -> int:
        """The end that a list made now shows, 0 for none."""
        return now + self.ttl if self.ttl else self.expired


NO_END: Final = End()


class RuleEntry(Struct, frozen=True, kw_only=True):
    """A rule's entry in a role or a user's record."""

    value: bool
    params: tuple[str, ...] = ()
    end: End = NO_END
