"""What a decision is made from: read in one round trip, of one moment (docs/decisions/0013).

`Facts` are a person's own and are read for every request. `ApplicationModel` and `Structure` belong to
everybody; they are kept in memory under the versions that the facts name, so a cache never answers for a
state that is gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.condition import ConditionSubject
from gatehouse.permissions.model.derived import DerivedCache
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rule import End
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.model.scope import ResourceKind, Scope
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.permissions.model.user_record import UserRecord

FACTS_WEIGHT: Final = 3_000  # bytes of the facts of somebody who holds nothing
NAME_WEIGHT: Final = 200
TEXT_WEIGHT: Final = 4
SCOPE_TEXT: Final = 200  # characters that a scope counts as, without what is held in it


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationState:
    """What may have changed about an application since it was last looked at."""

    application_id: int
    project_id: str | None
    removed: bool
    version: int = 1  # grows with every save of the application itself
    schema_version: int  # grows with every save of the schema or of a role


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One user, in the applications that were asked about, as of one moment."""

    subject: ConditionSubject
    login: str | None
    blocked: bool
    rev: int
    has_strong_factor: bool  # TOTP or a passkey: what publishing asks for
    groups: frozenset[str] = frozenset()  # those that list him by id
    owns: Mapping[str, End] = field(default_factory=dict)  # projects in which he is assigned project_owner
    service_account: ServiceAccount | None = None
    records: Mapping[int, UserRecord] = field(default_factory=dict)  # one for each application asked about
    applications: Mapping[int, ApplicationState] = field(default_factory=dict)  # without those that never were
    structure: int  # version of all projects and groups
    keys_version: int = 0  # of the signing keys: what the caller's token is judged by

    @property
    def weight(self) -> int:
        """Estimated bytes: documents take about four times their text."""
        texts = 0
        for record in self.records.values():
            texts += len(str(record.login)) + len(str(record.secret_data))
            for held in record.scopes.values():
                texts += len(str(held.private_data)) + len(str(held.public_data)) + SCOPE_TEXT + 16 * len(held.roles)
        names = len(self.groups) + len(self.owns) + len(self.subject.tags) + len(self.subject.purchases)
        return FACTS_WEIGHT + NAME_WEIGHT * names + TEXT_WEIGHT * texts

    @property
    def projects(self) -> frozenset[str]:
        """Every project that something here is about."""
        held = {scope.project_id for record in self.records.values() for scope in record.scopes}
        homes = {state.project_id for state in self.applications.values() if state.project_id}
        account = {self.service_account.project_id} if self.service_account else set()
        return frozenset(held | homes | account) - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationModel:
    application: Application
    schema: ApplicationSchema
    roles: Mapping[str, Role]  # by key
    size: int = field(default=0, compare=False)  # rules, role entries and params; known when it was loaded
    weight: int = field(default=0, compare=False)  # estimated bytes with its compiled form; known when it was loaded
    derived_cache: DerivedCache = field(init=False, default_factory=DerivedCache, compare=False, repr=False)

    @property
    def limited_roles(self) -> frozenset[str]:
        """Keys of the roles that only so many may hold."""
        return frozenset(key for key, role in self.roles.items() if role.user_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectModel:
    project: Project
    groups: Mapping[str, Group]  # all of its groups, by id; their `users` are left out: Facts.groups tells
    applications: frozenset[int]  # ids of its own, without those that are removed
    services: frozenset[int]  # ids of those it connects, without those that it may connect no more
    derived_cache: DerivedCache = field(init=False, default_factory=DerivedCache, compare=False, repr=False)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """Projects and groups as of one version: those asked for so far."""

    version: int
    projects: Mapping[str, ProjectModel]
    connecting: Mapping[int, tuple[str, ...]]  # application -> ids of the live projects that grant roles of it
    derived_cache: DerivedCache = field(init=False, default_factory=DerivedCache, compare=False, repr=False)

    def has_scope(self, scope: Scope) -> bool:
        """False of a resource that its project does not have. Nothing is held in a project not told of here."""
        model = self.projects.get(scope.project_id)
        return model is None or model.has_scope(scope)
