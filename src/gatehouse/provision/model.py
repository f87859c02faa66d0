"""Configuration files: problems, the stored state, writes, changes and plans."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gatehouse.accounts.bans.model import Ban
from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Details
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.images.model import StoredImage
from gatehouse.kernel.errors import BadInput, Conflict
from gatehouse.kernel.stored_settings import StoredSetting, StoredSettings
from gatehouse.kernel.text import is_plain_line
from gatehouse.oauth.model import Client
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.permissions.model.application import Application, ApplicationKey
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel, UserRecord
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import Project
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.model.schema_version import ChangeTally
from gatehouse.permissions.model.service_account import ServiceAccount

T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R")


OnProgress: TypeAlias = Callable[[int], object]  # gets the number reached so far
ShowProgress: TypeAlias = Callable[[str, int], AbstractContextManager[OnProgress]]  # for this work, with this total


def ignore_progress(reached: int) -> None:
    """Show nothing."""


@contextmanager
def show_no_progress(work: str, total: int) -> Iterator[OnProgress]:  # noqa: ARG001 - the default shows none
    yield ignore_progress


class Unfit(BadInput):
    """The file was refused and nothing was changed; has every problem, one line each."""

    public = "The file cannot be applied."

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems: Final = tuple(problems)
        super().__init__("\n".join((self.public, *self.problems)))


class Unsettled(Conflict):
    public = "The same records are being changed concurrently; nothing was applied. Try again."


class FollowUpProblem(str):
    """A problem that may only follow from another one."""

    __slots__ = ()


class Problems:
    """Collects every problem of a file, so that all can be fixed at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, place: str, what: str) -> None:
        self.lines.append(one_line(f"{place}: {what}"))

    def check_value(self, place: str, check: Callable[[T], V], given: T, otherwise: V) -> V:
        """The checked value; if `check` refuses it, collect the problem and return `otherwise`."""
        try:
            return check(given)
        except BadInput as error:
            self.add(place, str(error))
            return otherwise


def one_line(text: str) -> str:
    """Escape what is not printable: names in a file may contain anything, and a problem is one line."""
    return "".join(character if is_plain_line(character) else ascii(character)[1:-1] for character in text)


# The stored state a file is compared with, and the changes to it.


NO_IDS: Final[frozenset[str]] = frozenset()


class Action(StrEnum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


class ReadScope(Struct, frozen=True, kw_only=True):
    """What a plan reads: the users the file names and their records, or all of them."""

    all_users: bool = False
    user_ids: frozenset[str] = NO_IDS
    login_keys: frozenset[str] = NO_IDS
    usernames: frozenset[str] = NO_IDS  # user names that the file gives to accounts
    permissions: bool = False  # all projects and applications with what belongs to them
    record_users: frozenset[str] = NO_IDS  # whose records are needed
    member_projects: frozenset[str] = NO_IDS  # names or titles of projects whose members' records are needed
    all_records: bool = False
    bans: bool = False  # all that are active
    logo_contents: bool = False  # with the content of logos

    def __or__(self, other: "ReadScope") -> "ReadScope":
        return ReadScope(
            all_users=self.all_users or other.all_users,
            user_ids=self.user_ids | other.user_ids,
            login_keys=self.login_keys | other.login_keys,
            usernames=self.usernames | other.usernames,
            permissions=self.permissions or other.permissions,
            record_users=self.record_users | other.record_users,
            member_projects=self.member_projects | other.member_projects,
            all_records=self.all_records or other.all_records,
            bans=self.bans or other.bans,
            logo_contents=self.logo_contents or other.logo_contents,
        )


EVERYTHING: Final = ReadScope(all_users=True, permissions=True, all_records=True, bans=True, logo_contents=True)


class PermissionState(Struct, frozen=True, kw_only=True):
    """Projects and applications with what belongs to them, removed ones too."""

    projects: Mapping[str, ProjectModel] = msgspec.field(default_factory=dict)  # their groups have the listed users
    applications: Mapping[int, ApplicationModel] = msgspec.field(default_factory=dict)
    spent_application_ids: frozenset[int] = frozenset()
    access_keys: Mapping[int, tuple[AccessKey, ...]] = msgspec.field(default_factory=dict)
    public_keys: Mapping[int, tuple[ApplicationKey, ...]] = msgspec.field(default_factory=dict)  # custom ones
    service_accounts: Mapping[str, ServiceAccount] = msgspec.field(default_factory=dict)  # by user id
    records: Mapping[tuple[int, str], UserRecord] = msgspec.field(default_factory=dict)  # those in scope

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

    def has_scope(self, scope: Scope) -> bool:
        """Whether the scope exists. What is held in others has no effect; it is neither exported nor changed."""
        project = self.projects.get(scope.project_id)
        if scope.is_root or project is None or project.project.removed:
            return scope.is_root
        return project.has_scope(scope)

    def record(self, application_id: int, user_id: str) -> UserRecord:
        found = self.records.get((application_id, user_id))
        return found or UserRecord(application_id=application_id, user_id=user_id)

    # What the entries of one section see of each other; the next section reads what was stored, with side effects.

    def with_project(self, project: Project) -> "PermissionState":
        new = ProjectModel(project=project, groups={}, applications=frozenset(), services=frozenset())
        model = replace(self.projects.get(project.project_id, new), project=project)
        return replace(self, projects={**self.projects, project.project_id: model})

    def with_group(self, group: Group) -> "PermissionState":
        home = self.projects[group.project_id]
        model = replace(home, groups={**home.groups, group.group_id: group})
        return replace(self, projects={**self.projects, group.project_id: model})

    def with_application(self, model: ApplicationModel) -> "PermissionState":
        number = model.application.application_id
        return replace(
            self,
            applications={**self.applications, number: model},
            spent_application_ids=self.spent_application_ids | {number},
        )

    def with_access_key(self, before: AccessKey | None, after: AccessKey) -> "PermissionState":
        """With a new key, instead of another one if it replaces that."""
        number = after.application_id
        others = (key for key in self.access_keys.get(number, ()) if before is None or key.key_id != before.key_id)
        return replace(self, access_keys={**self.access_keys, number: (*others, after)})

    def with_records(self, records: Iterable[UserRecord]) -> "PermissionState":
        changed = {(record.application_id, record.user_id): record for record in records}
        return replace(self, records={**self.records, **changed})


class StoredState(Struct, frozen=True, kw_only=True):
    """What is stored, for all sections."""

    users: tuple[User, ...] = ()  # those in scope, and every administrator
    administrators: frozenset[str] = NO_IDS  # users who hold that root role of application 1 now
    retired_user_ids: frozenset[str] = NO_IDS  # ids in scope whose account was removed
    username_owners: Mapping[str, str] = msgspec.field(
        default_factory=dict
    )  # of names in scope; "" for an erased account
    clients: tuple[Client, ...] = ()
    removed_client_ids: frozenset[str] = NO_IDS
    permissions: PermissionState = msgspec.field(default_factory=PermissionState)
    settings: StoredSettings = msgspec.field(default_factory=dict)
    images: Mapping[str, StoredImage] = msgspec.field(default_factory=dict)  # by owner; mostly without content
    bans: tuple[Ban, ...] = ()  # the active ones, by person


class PutBan(Struct, frozen=True):
    """Bans a person instead of the active ban of the same scope; without `after` that is lifted."""

    before: Ban | None
    after: Ban | None


class PutSetting(Struct, frozen=True):
    """Stores the value of a setting, or removes it."""

    name: str
    setting: StoredSetting | None


class PutImage(Struct, frozen=True):
    """Stores the image of an owner, who names it by its ID, or removes it."""

    owner: str
    image: StoredImage | None


class AddUser(Struct, frozen=True):
    user: User
    administrator: bool


class ChangeUser(Struct, frozen=True):
    """Replaces the account unless it changed since it was read."""

    user: User
    administrator: bool | None  # None leaves the role as it is
    ends_tokens: bool  # raises `rev`: tokens issued before are refused (checklist LG-20)


class RemoveUser(Struct, frozen=True):
    user: User


class AddClient(Struct, frozen=True):
    client: Client


class ChangeClient(Struct, frozen=True):
    """Replaces the client unless it changed since it was read. A removed one is marked; its id is never reused."""

    client: Client


class AddProject(Struct, frozen=True):
    project: Project


class ChangeProject(Struct, frozen=True):
    """Replaces the project unless it changed since it was read, as all that follow do. A removed one is marked."""

    before: Project
    after: Project


class AddApplication(Struct, frozen=True):
    model: ApplicationModel


class ChangeApplication(Struct, frozen=True):
    before: Application
    after: Application


class ChangeSchema(Struct, frozen=True):
    """Replaces schema and roles; a removed role is removed from all its holders."""

    before: ApplicationModel
    after: ApplicationModel
    changes: tuple[ChangeTally, ...]


class PutAccessKey(Struct, frozen=True):
    """Adds a key, or replaces another one."""

    before: AccessKey | None
    after: AccessKey


class AddPublicKey(Struct, frozen=True):
    key: ApplicationKey


class AddGroup(Struct, frozen=True):
    group: Group


class ChangeGroup(Struct, frozen=True):
    before: Group
    after: Group


class RemoveGroup(Struct, frozen=True):
    """Removes the group and every reference to it."""

    group: Group


class ChangeRecords(Struct, frozen=True):
    """Replaces records of several users of one application together, so that a project always has an owner."""

    before: tuple[UserRecord, ...]
    after: tuple[UserRecord, ...]


class AddServiceAccount(Struct, frozen=True):
    account: ServiceAccount


class ChangeServiceAccount(Struct, frozen=True):
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
    | AddServiceAccount
    | ChangeServiceAccount
)
SingleWrite: TypeAlias = (
    ChangeUser | RemoveUser | AddClient | ChangeClient | PutSetting | PutBan | PutImage | PermissionWrite
)
Write: TypeAlias = AddUser | ChangeRecords | SingleWrite  # many of the first two are made together


class AuditNote(Struct, frozen=True, kw_only=True):
    """An audit record of a change, before it has an actor and a time."""

    event: AuditEvent
    details: Details = msgspec.field(default_factory=dict)
    personal: Mapping[str, str] = msgspec.field(default_factory=dict)
    subject: str = ""  # if not that of the change


class Change(SecretRecord, frozen=True, kw_only=True):
    """One line of the plan."""

    action: Action
    kind: str  # "user", "client"
    name: str  # login, client id, title
    fields: tuple[str, ...] = ()  # names of what differs; never values
    assumed: str = ""  # what a new record got because the file does not say, and why
    writes: tuple[Write, ...]  # at least one, done together
    subject: str  # of the audit records
    notes: tuple[AuditNote, ...]
    generated_secret: SecretText | None = None  # made by the plan, printed once

    @property
    def write(self) -> Write:
        return self.writes[0]


class RecordKind(Struct, Generic[R], frozen=True):
    """What the plan and the audit log call the records of one kind."""

    kind: str
    name_of: Callable[[R], str]
    subject_of: Callable[[R], str]

    def addition(
        self, record: R, *writes: Write, notes: Iterable[AuditNote], secret: str | None = None, assumed: str = ""
    ) -> Change:
        return self._change(Action.ADD, record, writes, notes=notes, secret=secret, assumed=assumed)

    def change(
        self,
        record: R,
        fields: Iterable[str],
        writes: Sequence[Write],
        *,
        notes: Iterable[AuditNote],
        secret: str | None = None,
    ) -> Change | None:
        """None without writes."""
        if not writes:
            return None
        return self._change(Action.CHANGE, record, writes, fields=fields, notes=notes, secret=secret)

    def removal(self, record: R, write: Write, note: AuditNote) -> Change:
        return self._change(Action.REMOVE, record, (write,), notes=(note,))

    def _change(
        self,
        action: Action,
        record: R,
        writes: Sequence[Write],
        *,
        fields: Iterable[str] = (),
        notes: Iterable[AuditNote],
        secret: str | None = None,
        assumed: str = "",
    ) -> Change:
        return Change(
            action=action,
            kind=self.kind,
            name=self.name_of(record),
            fields=tuple(fields),
            assumed=assumed,
            writes=tuple(writes),
            subject=self.subject_of(record),
            notes=tuple(notes),
            generated_secret=secret,
        )


class Plan(Struct, frozen=True, kw_only=True):
    changes: tuple[Change, ...] = ()
    spared: tuple[str, ...] = ()  # what --prune kept, and why
    warnings: tuple[str, ...] = ()

    def __or__(self, other: "Plan") -> "Plan":
        return Plan(
            changes=(*self.changes, *other.changes),
            spared=(*self.spared, *other.spared),
            warnings=(*self.warnings, *other.warnings),
        )


# The store.


# Yields the writes of one section after the other, gets the state with them, and returns the plan. Pure, because a
# transaction may be run again.
FileRun: TypeAlias = Generator[Sequence[Write], StoredState, Plan]


class PlanAudit(Struct, frozen=True, kw_only=True):
    """The audit records of a plan; those of a plan that makes an administrator close setup."""

    records: Sequence[AuditRecord] = ()
    setup_closed: AuditRecord | None = None


class ProvisionStore(Protocol):
    async def read_state(self, scope: ReadScope, now: int) -> StoredState:
        """Read everything in one snapshot."""

    def as_dry_run(self) -> "ProvisionStore":
        """A store that checks and makes all changes, and then rolls them back."""

    async def run_file(
        self,
        start: Callable[[StoredState], FileRun],
        scope: ReadScope,
        audit: Callable[[Plan], PlanAudit],
        *,
        by: str,
        now: int,
        on_progress: OnProgress,
    ) -> Plan:
        """Make the changes of a file in one transaction, section by section, and store their audit records.

        Each section is planned on what is stored after the sections before it. An error of a write is thrown into the
        run, which may go on to find more problems of a file that it refuses anyway. `on_progress` gets the number of
        writes made of a section.

        Raises a Conflict, and changes nothing, when something changed since it was read, a name or an id was taken
        meanwhile, or the last administrator who can sign in would be lost. With `setup_closed` the plan makes an
        administrator: setup is closed permanently, and that record is stored if it was open.
        """
