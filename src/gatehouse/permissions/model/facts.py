"""What a decision is made from: facts, models and structure, with the cache of their compiled forms."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.bans.model import UserBan, find_ban
from gatehouse.kernel.cached_property import cached_property
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.condition import ConditionSubject
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import NO_END, ROOT, End, ResourceKind, Scope
from gatehouse.permissions.model.schema import ApplicationSchema, Tree
from gatehouse.permissions.model.service_account import ServiceAccount

S = TypeVar("S")
T = TypeVar("T")


class DerivedCache:
    """Cache of the compiled forms of one record; never invalid, because the record is frozen and owns it."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[Callable[..., Any], Any] = {}

    def get(self, make: type[T]) -> T | None:
        """Return the form if it was made."""
        return self._made.get(make)

    def get_or_make(self, make: Callable[[S], T], source: S) -> T:
        """Return the form; two threads may both make it, and both results are equal."""
        made: T | None = self._made.get(make)
        if made is None:
            made = self._made[make] = make(source)
        return made


class DerivingRecord(Struct, frozen=True, dict=True):
    """A record with a cache of what is derived from it: not part of its value, and new in every copy."""

    @cached_property
    def derived_cache(self) -> DerivedCache:
        return DerivedCache()


# What is stored of one user in one application (interface §2.9, R5).


class Assignment(Struct, frozen=True, kw_only=True):
    role: str  # its key, Role.key
    end: End = NO_END


class ScopeHoldings(Struct, frozen=True, kw_only=True):
    """The record of one scope: roles in the order of assignment, and direct entries."""

    roles: tuple[Assignment, ...] = ()
    private_data: Tree = msgspec.field(default_factory=dict)
    public_data: Tree = msgspec.field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.roles or self.private_data or self.public_data)


NO_HOLDINGS: Final = ScopeHoldings()


class UserRecord(Struct, frozen=True, kw_only=True):
    application_id: int
    user_id: str
    login: Tree = msgspec.field(default_factory=dict)
    secret_data: Tree = msgspec.field(default_factory=dict)
    scopes: Mapping[Scope, ScopeHoldings] = msgspec.field(default_factory=dict)  # none of them empty
    version: int = 0  # grows by one with every change; 0 when nothing was ever written

    @property
    def root(self) -> ScopeHoldings:
        return self.scopes.get(ROOT, NO_HOLDINGS)

    def with_holdings(self, scope: Scope, holdings: ScopeHoldings) -> "UserRecord":
        """Return the record with these holdings in the scope, or without the scope when they are empty."""
        scopes = {**self.scopes, scope: holdings}
        return replace(
            self,
            scopes={place: scope_holdings for place, scope_holdings in scopes.items() if not scope_holdings.is_empty},
        )


# What a decision is made from: read in one round trip, in one consistent state (docs/decisions/0013).
#
# `Facts` are a person's own and are read for every request. `ApplicationModel` and `ProjectModel` belong to
# everyone; they are cached under the versions that the facts name, so no answer shows an older state.


FACTS_WEIGHT: Final = 3_000  # bytes of the facts of a person who holds nothing
NAME_WEIGHT: Final = 200
TEXT_WEIGHT: Final = 4
SCOPE_TEXT: Final = 200  # characters that a scope counts as, without what is held in it
ROLE_TEXT: Final = 30  # characters that an assigned role counts as


class ApplicationState(Struct, frozen=True, kw_only=True):
    """The versions of an application, which tell whether a cached model is current."""

    application_id: int
    project_id: str | None
    removed: bool
    version: int = 1  # grows with every save of the application itself
    schema_version: int  # grows with every save of the schema or of a role


class Facts(Struct, frozen=True, kw_only=True):
    """One user in the requested applications, in one consistent state."""

    subject: ConditionSubject
    login: str | None
    blocked: bool
    rev: int
    has_strong_factor: bool  # TOTP or a passkey: what publishing asks for
    groups: frozenset[str] = frozenset()  # those that list the user by id
    owns: Mapping[str, End] = msgspec.field(
        default_factory=dict
    )  # projects in which the user is assigned project_owner
    service_account: ServiceAccount | None = None
    records: Mapping[int, UserRecord] = msgspec.field(default_factory=dict)  # one for each application asked about
    applications: Mapping[int, ApplicationState] = msgspec.field(default_factory=dict)  # without unknown applications
    # By application, the live projects that may grant the user roles of it through a group. Only the facts of one
    # user have them, and the versions below.
    granting: Mapping[int, frozenset[str]] = msgspec.field(default_factory=dict)
    # Of the models of all projects that concern the user in these applications; 0 for one that does not exist.
    project_versions: Mapping[str, int] = msgspec.field(default_factory=dict)
    keys_version: int = 0  # of the signing keys: what the caller's token is judged by
    bans: tuple[UserBan, ...] = ()  # also those that have ended
    device_bans: bool = False  # whether any ban covers devices

    def ban_from(self, application_id: int, now: int, device_bans: tuple[UserBan, ...] = ()) -> UserBan | None:
        """Return the ban from the application, its project or the installation that counts now.

        `device_bans`: those of the device that the person uses.
        """
        bans = (*self.bans, *device_bans)
        if not bans:
            return None
        state = self.applications.get(application_id)
        project_id = state.project_id if state else None
        return find_ban(bans, now, application_id=application_id, project_id=project_id or "")

    def is_banned_from_project(self, project_id: str, now: int) -> bool:
        return find_ban(self.bans, now, project_id=project_id) is not None

    @property
    def weight(self) -> int:
        """Estimated bytes: documents take about four times their text."""
        texts = 0
        for record in self.records.values():
            texts += len(str(record.login)) + len(str(record.secret_data))
            for holdings in record.scopes.values():
                texts += (
                    len(str(holdings.private_data))
                    + len(str(holdings.public_data))
                    + SCOPE_TEXT
                    + ROLE_TEXT * len(holdings.roles)
                )
        names = len(self.groups) + len(self.owns) + len(self.subject.tags) + len(self.subject.purchases)
        names += len(self.project_versions)
        return FACTS_WEIGHT + NAME_WEIGHT * names + TEXT_WEIGHT * texts

    @property
    def projects(self) -> frozenset[str]:
        """All projects that these facts mention."""
        record_projects = {scope.project_id for record in self.records.values() for scope in record.scopes}
        homes = {state.project_id for state in self.applications.values() if state.project_id}
        account = {self.service_account.project_id} if self.service_account else set()
        return frozenset(record_projects | homes | account) - {""}

    def versions_in(self, application_id: int) -> Mapping[str, int]:
        """Return the versions of all projects that what the user holds in the application depends on."""
        named = {scope.project_id for scope in self.records[application_id].scopes}
        if self.service_account:
            named.add(self.service_account.project_id)
        named |= self.granting.get(application_id, frozenset())
        return {project_id: self.project_versions.get(project_id, 0) for project_id in named}


class ApplicationModel(DerivingRecord, frozen=True, kw_only=True, eq=False):  # noqa: PLW1641 - never hashed
    application: Application
    schema: ApplicationSchema
    roles: Mapping[str, Role]  # by key
    size: int = 0  # rules, role entries and params; known when it was loaded
    weight: int = 0  # estimated bytes with its compiled form; known when it was loaded

    def __eq__(self, other: object) -> bool:
        """Compare what is decided by, without the estimates of its size."""
        if not isinstance(other, ApplicationModel):
            return NotImplemented
        return (self.application, self.schema, self.roles) == (other.application, other.schema, other.roles)

    @property
    def limited_roles(self) -> frozenset[str]:
        """Keys of the roles with a user limit."""
        return frozenset(key for key, role in self.roles.items() if role.user_limit)


class ProjectModel(DerivingRecord, frozen=True, kw_only=True):
    project: Project
    groups: Mapping[str, Group]  # all of its groups, by id; without `users`: Facts.groups has them
    applications: frozenset[int]  # ids of its own, without those that are removed
    services: frozenset[int]  # ids of those it connects, without those that it may connect no more
    version: int = 1  # grows with every change of any of this

    def has_scope(self, scope: Scope) -> bool:
        """Whether this is the project itself or a resource of it; on anything else nothing in it counts (R5)."""
        match scope.kind:
            case None:
                return True
            case ResourceKind.APPLICATION:
                return int(scope.resource_id) in self.applications
            case ResourceKind.SERVICE:
                return int(scope.resource_id) in self.services
            case ResourceKind.GROUP:
                return scope.resource_id in self.groups


class Structure(DerivingRecord, frozen=True, kw_only=True):
    """Projects in one consistent state: all that decide about some people, or all that connect an application."""

    projects: Mapping[str, ProjectModel]
    connecting: Mapping[int, Collection[str]]  # application -> ids of the live projects that grant roles of it

    def has_scope(self, scope: Scope) -> bool:
        """False for a resource that its project does not have; True in projects that are not part of it."""
        model = self.projects.get(scope.project_id)
        return model is None or model.has_scope(scope)
