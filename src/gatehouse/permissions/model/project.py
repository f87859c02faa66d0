"""A project with its groups and service accounts (interface §2.4, §2.5, R1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from gatehouse.fields.model import CREATED, FIXED, Field, described_fields
from gatehouse.permissions.model.condition import Condition


class GrantAction(StrEnum):
    GRANT = "grant"
    REVOKE = "revoke"  # beats grant


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGrant:
    """Grants roles of a connected application to a group in the project, or revokes them."""

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


# A group of users of a project (interface §2.5).


MAX_GROUP_USERS: Final = 100  # listed by id; interface §8
MAX_GROUPS: Final = 500  # of one project: whose conditions are asked for each of its people
PROJECT_TAG: Final = "project"  # a group needs it to be in a membership list; a new group has it (R5)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCondition:
    title: str
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    group_id: str  # 24 hex digits
    project_id: str
    title: str
    description: str = ""
    tags: tuple[str, ...] = (PROJECT_TAG,)
    conditions: tuple[GroupCondition, ...] = ()  # people who meet any of them are members
    users: tuple[str, ...] = ()
    created_at: int
    version: int = 1

    @property
    def title_key(self) -> str:
        """Titles are unique in a project, ignoring case and the difference of space and underscore."""
        return self.title.lower().replace(" ", "_")


# A service account: a user without login and password that belongs to a project (R1).


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """A `Field` says how the API, files, CSV and audit records read a field."""

    user_id: Annotated[str, FIXED]
    project_id: Annotated[str, FIXED]
    name: Annotated[str, FIXED]
    comment: Annotated[str, Field()] = ""
    ip_ranges: Annotated[tuple[str, ...], Field()] = ()
    public_key: Annotated[str, Field()] = ""  # when there is one, each request is signed with its private half
    created_by: Annotated[str, FIXED]
    created_at: Annotated[int, CREATED]
    jti: str  # of the one token that is live
    revoked: Annotated[bool, Field()] = False
    version: Annotated[int, FIXED] = 1


SERVICE_ACCOUNT_FIELDS: Final = tuple(described_fields(ServiceAccount, Field))
CHANGEABLE_ACCOUNT_FIELDS: Final = tuple(one for one in SERVICE_ACCOUNT_FIELDS if one.field.patchable)


# What is deleted with a project that is removed permanently (R5).


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureCounts:
    """A removed project, and how much of what is its own."""

    project_id: str
    title: str
    applications: int
    roles: int
    clients: int
    keys: int  # access keys, public keys, service JWTs and e-mail secrets of its applications
    groups: int
    service_accounts: int
    people: int  # people with entries in it or in its applications
    connections: int  # of its applications to other projects
