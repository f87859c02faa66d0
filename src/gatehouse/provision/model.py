"""What can go wrong with a file that is to be applied."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol, TypeAlias, TypeVar

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.kernel.errors import BadInput, Conflict
from gatehouse.kernel.text import is_plain_line
from gatehouse.oauth.model import Client
from gatehouse.permissions.model.application import AccessKey, Application, ApplicationKey
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel, UserRecord
from gatehouse.permissions.model.project import Group, Project, ServiceAccount
from gatehouse.permissions.model.rules import Scope as Held
from gatehouse.permissions.model.schema_version import ChangeTally

T = TypeVar("T")
V = TypeVar("V")


class Unfit(BadInput):
    """Nothing was changed; carries everything that is wrong, one line each."""

    public = "The file cannot be applied."

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems: Final = tuple(problems)
        super().__init__("\n".join((self.public, *self.problems)))


class NoAdministratorLeft(Conflict):
    public = "No one would be left to administer the service."


class Unsettled(Conflict):
    public = "The same records are being changed concurrently; nothing was applied. Try again."


class FollowUpProblem(str):
    """A complaint that may only follow from another one."""

    __slots__ = ()


class Problems:
    """Collects what is wrong, so that its author can mend it all at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, place: str, what: str) -> None:
        self.lines.append(one_line(f"{place}: {what}"))

    def check_value(self, place: str, check: Callable[[T], V], given: T, otherwise: V) -> V:
        """What `check` makes of the value; a complaint is collected and `otherwise` stands in."""
        try:
            return check(given)
        except BadInput as error:
            self.add(place, str(error))
            return otherwise


def one_line(text: str) -> str:
    """Names in a file may hold anything; a problem stays one honest line."""
    return "".join(character if is_plain_line(character) else ascii(character)[1:-1] for character in text)


# The state a file is compared with, and the changes that come of it.


NO_IDS: Final[frozenset[str]] = frozenset()


class Action(StrEnum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadScope:
    """What a plan has to see: of people and what they hold only those the file names, or all."""

    all_users: bool = False
    user_ids: frozenset[str] = NO_IDS
    login_keys: frozenset[str] = NO_IDS
    permissions: bool = False  # projects, applications and what belongs to them, all of it
    record_users: frozenset[str] = NO_IDS  # whose records are needed
    member_projects: frozenset[str] = NO_IDS  # names or titles of projects whose members' records are needed
    all_records: bool = False

    def __or__(self, other: "ReadScope") -> "ReadScope":
        return ReadScope(
            all_users=self.all_users or other.all_users,
            user_ids=self.user_ids | other.user_ids,
            login_keys=self.login_keys | other.login_keys,
            permissions=self.permissions or other.permissions,
            record_users=self.record_users | other.record_users,
            member_projects=self.member_projects | other.member_projects,
            all_records=self.all_records or other.all_records,
        )


EVERYTHING: Final = ReadScope(all_users=True, permissions=True, all_records=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionState:
    """Who may do what: projects, applications and what belongs to them, removed ones too."""

    projects: Mapping[str, ProjectModel] = field(default_factory=dict)  # groups with the users they list
    applications: Mapping[int, ApplicationModel] = field(default_factory=dict)
    spent_application_ids: frozenset[int] = frozenset()
    access_keys: Mapping[int, tuple[AccessKey, ...]] = field(default_factory=dict)
    public_keys: Mapping[int, tuple[ApplicationKey, ...]] = field(default_factory=dict)  # custom ones
    service_accounts: Mapping[str, ServiceAccount] = field(default_factory=dict)  # by user id
    records: Mapping[tuple[int, str], UserRecord] = field(default_factory=dict)  # those in scope

    def project(self, name: str) -> ProjectModel | None:
        """By id or alias."""
        found = self.projects.get(name)
        if found is not None:
            return found
        return next((model for model in self.projects.values() if name in model.project.aliases), None)

    def is_live(self, application: Application) -> bool:
        """Neither removed nor in a project that is."""
        home = None if application.project_id is None else self.projects.get(application.project_id)
        return not application.removed and (home is None or not home.project.removed)

    def has_scope(self, scope: Held) -> bool:
        """Whether there is such a place: what is held elsewhere is out of reach, and neither told nor touched."""
        project = self.projects.get(scope.project_id)
        if scope.is_root or project is None or project.project.removed:
            return scope.is_root
        return project.has_scope(scope)

    def record(self, application_id: int, user_id: str) -> UserRecord:
        found = self.records.get((application_id, user_id))
        return found or UserRecord(application_id=application_id, user_id=user_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """What is stored: one field or two for each section."""

    users: tuple[User, ...] = ()  # those in scope, and every administrator
    administrators: frozenset[str] = NO_IDS  # who holds that root role of application 1 now
    retired_user_ids: frozenset[str] = NO_IDS  # of the ids in scope: given once, their account is gone
    clients: tuple[Client, ...] = ()
    removed_client_ids: frozenset[str] = NO_IDS
    permissions: PermissionState = field(default_factory=PermissionState)


@dataclass(frozen=True, slots=True)
class AddUser:
    user: User
    administrator: bool


@dataclass(frozen=True, slots=True)
class ChangeUser:
    """Replaces the account if it is still the version that was read."""

    user: User
    administrator: bool | None  # None leaves the role as it is
    ends_tokens: bool  # raises `rev`: whatever was issued before is refused (checklist LG-20)


@dataclass(frozen=True, slots=True)
class RemoveUser:
    user: User


@dataclass(frozen=True, slots=True)
class AddClient:
    client: Client


@dataclass(frozen=True, slots=True)
class ChangeClient:
    """Replaces the client if it is still the version that was read; a removed one is marked, its id is spent."""

    client: Client


@dataclass(frozen=True, slots=True)
class AddProject:
    project: Project


@dataclass(frozen=True, slots=True)
class ChangeProject:
    """Replaces the project if it still is what was read, as all that follows; a removed one is marked."""

    before: Project
    after: Project


@dataclass(frozen=True, slots=True)
class AddApplication:
    model: ApplicationModel


@dataclass(frozen=True, slots=True)
class ChangeApplication:
    before: Application
    after: Application


@dataclass(frozen=True, slots=True)
class ChangeSchema:
    """Schema and roles; a role that is gone is taken from everyone."""

    before: ApplicationModel
    after: ApplicationModel
    changes: tuple[ChangeTally, ...]


@dataclass(frozen=True, slots=True)
class PutAccessKey:
    """Adds a key, or puts it in the place of another."""

    before: AccessKey | None
    after: AccessKey


@dataclass(frozen=True, slots=True)
class AddPublicKey:
    key: ApplicationKey


@dataclass(frozen=True, slots=True)
class AddGroup:
    group: Group


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    before: Group
    after: Group


@dataclass(frozen=True, slots=True)
class RemoveGroup:
    """With all that names it."""

    group: Group


@dataclass(frozen=True, slots=True)
class ChangeRecords:
    """Records of several users in one application, as one: who owns a project is handed over in one go."""

    before: tuple[UserRecord, ...]
    after: tuple[UserRecord, ...]


@dataclass(frozen=True, slots=True)
class AddServiceAccount:
    account: ServiceAccount


@dataclass(frozen=True, slots=True)
class ChangeServiceAccount:
    before: ServiceAccount
    after: ServiceAccount


PermissionWrite: TypeAlias = (
    AddProject
    | ChangeProject
    | AddApplication
    | ChangeApplication
    | ChangeSchema
    | PutAccessKey
    | AddPublicKey
    | AddGroup
    | ChangeGroup
    | RemoveGroup
    | ChangeRecords
    | AddServiceAccount
    | ChangeServiceAccount
)
Write: TypeAlias = AddUser | ChangeUser | RemoveUser | AddClient | ChangeClient | PermissionWrite


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditNote:
    """What the audit log will say of a change."""

    event: AuditEvent
    details: Details = field(default_factory=dict)
    personal: Mapping[str, str] = field(default_factory=dict)
    subject: str = ""  # when it is another than that of the change


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of the plan."""

    action: Action
    kind: str  # "user", "client": what a person calls it
    name: str  # how its owner knows it
    fields: tuple[str, ...] = ()  # what differs, by name; never a value
    write: Write
    further_writes: tuple[Write, ...] = ()  # what else it takes
    subject: str  # whom the audit log files it under
    notes: tuple[AuditNote, ...]
    generated_secret: str | None = field(default=None, repr=False)  # made here, told once

    @property
    def writes(self) -> tuple[Write, ...]:
        return (self.write, *self.further_writes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    changes: tuple[Change, ...]
    spared: tuple[str, ...] = ()  # what --prune left standing, and why


# What provisioning needs kept.


class ProvisionStore(Protocol):
    async def read_state(self, scope: ReadScope, now: int) -> StoredState:
        """What is stored, as of one moment."""

    def as_dry_run(self) -> "ProvisionStore":
        """The same, in which nothing is kept: what is carried out is refused or else undone."""

    async def write_changes(
        self, writes: Sequence[Write], records: Sequence[AuditRecord], *, setup_closed: AuditRecord | None, now: int
    ) -> None:
        """Do all of it in the order given, and keep the records, in one transaction.

        Raises a Conflict, and changes nothing, when anything is no longer as it was read, a name or an id was
        taken meanwhile, or no administrator would be left who can sign in though there is one now. With
        `setup_closed` an administrator is made: setup closes for ever, and that record is kept if it was open.
        """
