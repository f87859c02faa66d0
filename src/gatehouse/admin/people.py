"""People as the console lists and shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gatehouse.admin.names import NamedApplication
from gatehouse.admin.paging import Page, PageRequest
from gatehouse.audit.model import AuditRecord


class PeopleFilter(StrEnum):
    """Whom a list is about; the words are `people.among_<value>`."""

    EVERYBODY = "everybody"
    BLOCKED = "blocked"
    ADMINISTRATORS = "administrators"
    SERVICE_ACCOUNTS = "service_accounts"


class ActivitySide(StrEnum):
    """Which records of the audit log: those about a person, or those of what he did to others."""

    ABOUT = "about"
    BY = "by"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonListItem:
    user_id: str
    kind: str
    nick: str
    login: str
    email_verified: bool
    blocked: bool
    administers: bool
    registered_at: int
    seen_at: int  # 0 for never, or longer ago than is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """What is not in the account itself."""

    seen_at: int
    administers: bool  # holds the role at the root of application 1
    project_id: str  # of a service account


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectRole:
    application_id: int
    application: str
    role: str
    project_id: str
    project: str
    resource_kind: str
    resource_id: str
    ends_at: int
    ttl: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectEntries:
    """A place at which rules are written for the person directly."""

    application_id: int
    application: str
    project_id: str
    project: str
    resource_kind: str
    resource_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectGroup:
    """A group that lists the person by id."""

    group_id: str
    group: str
    project_id: str
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectPermissions:
    """What is written about a person directly; what comes by conditions and groups is for evaluation."""

    roles: Sequence[DirectRole]
    entries: Sequence[DirectEntries]
    groups: Sequence[DirectGroup]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonErasureImpact:
    """What goes when an account is erased."""

    roles: int
    groups: int
    clients: int  # that hold something of his
    sessions: int
    sole_owner_of: Sequence[str]  # titles of projects that would have no owner


class PeopleListStore(Protocol):
    async def people(self, among: PeopleFilter, tag: str, wanted: PageRequest, now: int) -> Page[PersonListItem]:
        """The newest first; `tag` narrows it to those who have it, and nothing to everybody."""

    async def account_state(self, user_id: str, now: int) -> AccountState:
        """Of somebody who is there."""

    async def direct_permissions(self, user_id: str) -> DirectPermissions:
        """By application, then by project."""

    async def applications(self) -> Sequence[NamedApplication]:
        """That are not removed, by name; application 1 first."""

    async def activity(self, user_id: str, side: ActivitySide, wanted: PageRequest) -> Page[AuditRecord]:
        """The newest first."""

    async def erasure_impact(self, user_id: str, now: int) -> PersonErasureImpact:
        """What would end with the account."""
