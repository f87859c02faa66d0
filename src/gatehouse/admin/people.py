"""People as the console lists and shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gatehouse.admin.names import NamedApplication
from gatehouse.admin.paging import Page, PageRequest
from gatehouse.audit.model import AuditRecord


class PeopleFilter(StrEnum):
    """Which people are listed; the texts are `people.among_<value>`."""

    EVERYBODY = "everybody"
    BLOCKED = "blocked"
    ADMINISTRATORS = "administrators"
    SERVICE_ACCOUNTS = "service_accounts"


class ActivitySide(StrEnum):
    """Which records of the audit log: those about a person, or those of their actions."""

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
    seen_at: int  # 0 for never, or longer ago than is stored


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """Facts about a person that are not in the account itself."""

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
    """A scope with rules for the person directly."""

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
    """Direct assignments of a person; what conditions and groups grant is left to evaluation."""

    roles: Sequence[DirectRole]
    entries: Sequence[DirectEntries]
    groups: Sequence[DirectGroup]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonErasureImpact:
    """What ends when an account is erased."""

    roles: int
    groups: int
    clients: int  # that have grants of the person
    sessions: int
    sole_owner_of: Sequence[str]  # titles of projects that would have no owner


class PeopleListStore(Protocol):
    async def people(
        self, among: PeopleFilter, tag: str, page_request: PageRequest, now: int
    ) -> Page[PersonListItem]:
        """Return a page of people, the newest first; an empty `tag` matches everyone."""

    async def account_state(self, user_id: str, now: int) -> AccountState:
        """Return the facts of an existing person."""

    async def direct_permissions(self, user_id: str) -> DirectPermissions:
        """Return the direct assignments, by application and project."""

    async def applications(self) -> Sequence[NamedApplication]:
        """Return the applications that are not removed, by name; application 1 first."""

    async def activity(self, user_id: str, side: ActivitySide, page_request: PageRequest) -> Page[AuditRecord]:
        """Return a page of records, the newest first."""

    async def erasure_impact(self, user_id: str, now: int) -> PersonErasureImpact:
        """Return what ends when the account is erased."""
