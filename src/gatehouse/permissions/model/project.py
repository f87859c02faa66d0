"""A project (interface §2.4)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class GrantAction(StrEnum):
    GRANT = "grant"
    REVOKE = "revoke"  # beats grant


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGrant:
    """Gives the members of a group roles of a connected application, or takes these away, in the project."""

    group_id: str
    roles: tuple[str, ...]  # keys
    action: GrantAction


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    allowed_domains: tuple[str, ...] = ()
    services: Mapping[int, tuple[GroupGrant, ...]] = field(default_factory=dict)  # by application


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    project_id: str
    title: str
    description: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    settings: ProjectSettings = ProjectSettings()
    allow: tuple[str, ...] = ()  # group ids; when there are any, only their members hold anything here
    disallow: tuple[str, ...] = ()  # always wins
    removed: bool = False
    author: str
    application_id: int | None = None  # the one that was made with it
    created_at: int
    version: int = 1

    @property
    def title_key(self) -> str:
        """The id its title would give: titles are unique by it (checklist PR-04)."""
        return self.title.lower().replace(" ", "_")
