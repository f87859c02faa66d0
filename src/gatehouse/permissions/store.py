"""The stores of the permission model.

An edit reads the stored state, lets `change` make the new one, and stores that with the audit records of `change`,
all in one transaction. Edits of the same record run one after the other: of two concurrent edits the second sees what
the first stored. `change` is pure and fast, may be called again from the start, and refuses by raising, which changes
nothing. Every stored record has the version after the one that was read.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from gatehouse.accounts.bans.model import Ban, BanDigest
from gatehouse.audit.model import AuditRecord
from gatehouse.images.model import StoredImage
from gatehouse.mail.model import OutboxMail
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.permissions.model.application import Application, ApplicationKey
from gatehouse.permissions.model.candidates import ApplicationSnapshot, CandidateFilter, CandidatePage, DryRunResult
from gatehouse.permissions.model.facts import ApplicationModel, Facts, ProjectModel, Structure, UserRecord
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.invitation import NEWEST, AccessInvitation, InvitationPosition
from gatehouse.permissions.model.objects import ObjectFacts
from gatehouse.permissions.model.project import ErasureCounts, Project
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.schema import ApplicationSchema, Tree
from gatehouse.permissions.model.schema_version import ChangeTally
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.permissions.model.service_token import EmailSecret, FoundServiceToken, ServiceToken

T = TypeVar("T")


class EditResult(Struct, Generic[T], frozen=True):
    """The result of an edit: the new state, and its audit records."""

    state: T
    records: Sequence[AuditRecord]
    changes: Sequence[ChangeTally] = ()  # of rules and roles, for the schema version


Change = Callable[[T], EditResult[T]]


class BanRules(Struct, frozen=True, kw_only=True):
    """How bans follow a person to other accounts (R14): pure and fast functions, used inside transactions."""

    digest_identity: Callable[[str, str], BanDigest]  # of issuer and subject
    digest_address: Callable[[str], BanDigest]  # of the login key of a verified address
    digest_phone: Callable[[str], BanDigest]  # of a verified number in E.164
    make_copy: Callable[[Ban, str], tuple[Ban, AuditRecord]]  # the same ban for the account with this ID
    lift_record: Callable[[Ban], AuditRecord]  # of a copy that ends with its source
    covers: Callable[[Ban, str, Facts, ApplicationModel, Structure], bool]  # see BanCopyRules.covers


class PermissionStore(Protocol):
    """Reading for decisions, and application 1."""

    async def install_central(
        self, application: Application, schema: ApplicationSchema, roles: Sequence[Role]
    ) -> None:
        """Store application 1 with its schema and roles unless it exists; atomic and repeatable."""

    async def facts(
        self, user_id: str, application_ids: Collection[int], project_ids: Collection[str] = ()
    ) -> Facts | None:
        """The facts of a user in these applications, of one state, in one round trip; None: no such user.

        They have the versions of these projects too.
        """

    async def facts_with_objects(
        self,
        user_id: str,
        application_ids: Collection[int],
        application_id: int,
        keys: Collection[str],
        project_ids: Collection[str] = (),
    ) -> tuple[Facts, ObjectFacts] | None:
        """The facts with these objects of one of the applications, in one state and one round trip.

        The facts have the versions of the objects' projects too.
        """

    async def application_models(self, application_ids: Collection[int]) -> Mapping[int, ApplicationModel]:
        """The applications with their schemas and roles, removed ones too, in one consistent state."""

    async def projects(self, project_ids: Collection[str]) -> Mapping[str, ProjectModel]:
        """These projects by ID, removed ones too, in one consistent state, without unknown ones."""

    async def login_section(self, application_id: int) -> Tree | None:
        """The login rules of the application's schema; None when it is unknown or removed."""

    async def has_email_secret(self, application_id: int, digest: bytes) -> bool:
        """Whether this is one of the application's `with_email` secrets."""

    async def add_email_secret(self, application_id: int, digest: bytes, now: int, entry: AuditRecord) -> None:
        """Let callers with the secret see login emails of this application's users. Raises ApplicationNotFound."""

    async def email_secrets(self, application_id: int) -> Sequence[EmailSecret]:
        """Those of the application, the newest first."""

    async def remove_email_secret(self, application_id: int, digest: bytes, entry: AuditRecord) -> bool:
        """Delete the secret; False, without an audit record, when it was gone already."""

    async def root_roles(self, application_id: int, user_id: str, now: int) -> Sequence[str]:
        """Names of the roles the user holds at the root of the application, expired ones left out."""


class NewApplication(Struct, frozen=True, kw_only=True):
    """A new application; `application_id` 0 means the next free one."""

    application: Application
    schema: ApplicationSchema
    roles: Sequence[Role] = ()
    creator: UserRecord | None = None  # what its creator gets in it, or on it in application 1
    logo: StoredImage | None = None


class ApplicationStore(Protocol):
    async def application(self, application_id: int) -> Application:
        """Raises ApplicationNotFound; removed ones are found."""

    async def create_application(
        self, new: Callable[[int], tuple[NewApplication, Sequence[AuditRecord]]]
    ) -> Application:
        """Reserve the next free id, never a used one, and store what `new` makes with it.

        Raises NameTaken when another live application of the project has that name, ResourceTaken when one
        declares its API resource.
        """

    async def edit_application(
        self, application_id: int, change: Change[Application], logo: StoredImage | None = None
    ) -> Application:
        """Edit one; nothing is held on it in a project that it left.

        `logo`: a new one, which the application names by its ID. A removed application has none. Raises
        ApplicationNotFound, NameTaken, ResourceTaken.
        """

    async def edit_schema(self, application_id: int, change: Change[ApplicationModel]) -> ApplicationModel:
        """Edit schema and roles as one; the schema's version grows by exactly one, an edited role's too.

        A role that is no longer there is taken from every user. One that became protected is taken from every
        project scope (interface §3). Raises ApplicationNotFound; ApplicationTooLarge when it grows beyond its limits.
        """

    async def applications_in(self, project_ids: Collection[str]) -> Sequence[Application]:
        """Those of these projects that are not removed, by id."""

    async def count_applications_with_sites(self) -> int:
        """How many applications protect a site."""

    async def count_role_holders(self, application_id: int, now: int) -> Mapping[str, int]:
        """How many users are assigned each role, by role key: distinct, unexpired, in any scope."""

    async def count_holders_of_roles(self, application_id: int, keys: Collection[str], now: int) -> Mapping[str, int]:
        """The same of these roles only: of limited ones there are never many."""


class UserRecordStore(Protocol):
    async def edit_record(
        self, application_id: int, user_id: str, change: Change[UserRecord], now: int
    ) -> UserRecord:
        """Edit one user's record in one application.

        Raises ApplicationNotFound, UserNotFound, RoleNotFound when an assigned role is gone, RoleFull when a
        role newly given would have more holders than its user_limit: never exceeded, however many race (R5);
        LastOwner when a project that had an owner would have none.
        """

    async def records_in_project(self, application_id: int, project_id: str) -> Sequence[UserRecord]:
        """Everyone who has anything written in scopes of the project; only those scopes are filled."""


class ProjectStore(Protocol):
    async def project(self, project_id: str) -> ProjectModel:
        """By id or alias, removed ones too; groups with their listed users. Raises ProjectNotFound."""

    async def publish_project(
        self,
        project: Project,
        new: NewApplication | None,
        limit: int | None,
        users: Sequence[UserRecord],
        records: Callable[[int], Sequence[AuditRecord]],
    ) -> Project:
        """Store a new project with its application and its first members' records of application 1, atomically.

        `limit`: how many projects its author may have; racing publishes never exceed it. Raises NameTaken when
        the id, the title or the application's name is taken, by removed projects too, LimitReached.
        """

    async def live_project_id(self, name: str) -> str | None:
        """Return the ID of the project with this ID or alias; None if there is none or it is removed."""

    async def live_project_ids(self, after: str, most: int) -> Sequence[str]:
        """Return IDs of projects that are not removed, in their order, from those after this one on."""

    async def count_authored_projects(self, user_id: str) -> int:
        """How many projects the user made that are not removed."""

    async def edit_project(self, project_id: str, change: Change[ProjectModel]) -> ProjectModel:
        """Edit the project itself, not its groups. Raises ProjectNotFound, NameTaken for a title or alias."""

    async def edit_members(self, project_id: str, change: "MembershipChange", now: int) -> ProjectModel:
        """Edit the lists of groups and the records of several users in application 1 in one transaction.

        Raises what edit_project and edit_record raise.
        """


class MembershipChange(Struct, frozen=True, kw_only=True):
    project: Change[ProjectModel]
    users: Mapping[str, Change[UserRecord]]


class GroupStore(Protocol):
    async def group(self, group_id: str) -> Group:
        """With its listed users. Raises GroupNotFound."""

    async def create_group(self, group: Group, records: Sequence[AuditRecord], *, most: int | None = None) -> Group:
        """Raises ProjectNotFound, NameTaken; GroupsFull when the project has `most` groups, however many race."""

    async def edit_group(self, group_id: str, change: Change[Group]) -> Group:
        """Raises GroupNotFound, NameTaken, UserNotFound for a listed user that does not exist.

        GroupListed when one that stands in allow or disallow would lose the tag that it needs there.
        """

    async def edit_group_access(
        self, group_id: str, change: Callable[[Group, Sequence[Group]], EditResult[Group]]
    ) -> Group:
        """The same for a change that depends on the project's other groups, which are locked meanwhile."""

    async def delete_group(self, group_id: str, records: Sequence[AuditRecord], *, seen: int | None = None) -> None:
        """Remove it with everything that refers to it: members, grants, holdings on it.

        Raises GroupListed for one that stands in allow or disallow of its project; VersionConflict when `seen` is
        given and is not its version.
        """


class AccessInvitationStore(Protocol):
    async def add(self, invitation: AccessInvitation, entry: AuditRecord, mails: Sequence[OutboxMail]) -> None:
        """Store it with its emails; the inviter's earlier one for the same access is replaced."""

    async def find(self, invitation_id: str, now: int) -> AccessInvitation | None:
        """Return the open invitation with this ID."""

    async def of_user(
        self, user_id: str, now: int, most: int, after: InvitationPosition = NEWEST
    ) -> Sequence[AccessInvitation]:
        """Return those that this account could accept now, the newest first."""

    async def into_project(
        self, project_id: str, now: int, most: int, after: InvitationPosition = NEWEST
    ) -> Sequence[AccessInvitation]:
        """Return those that people could accept now, the newest first."""

    async def take(self, invitation_id: str, user_id: str, entry: AuditRecord, now: int) -> bool:
        """Delete the account's open invitation; False when there is none. Of two callers one gets True."""

    async def record_failure(self, entry: AuditRecord) -> None:
        """Store the record of an accepted invitation that gave nothing."""

    async def withdraw(self, invitation_id: str, project_id: str, entry: AuditRecord) -> bool:
        """Delete an invitation into this project; False when there is none."""


class ApplicationKeyStore(Protocol):
    async def is_application_live(self, application_id: int) -> bool:
        """Whether there is such an application, not removed, in no project that is removed."""

    async def access_keys(self, application_id: int) -> Sequence[AccessKey]:
        """Return the access keys, oldest first."""

    async def access_key_by_digest(self, digest: bytes) -> AccessKey | None:
        """Only of an application that is not removed, in a project that is not removed."""

    async def add_access_key(self, key: AccessKey, records: Sequence[AuditRecord]) -> None:
        """Raises ApplicationNotFound, LimitReached: never more than two, however many race."""

    async def delete_access_key(self, application_id: int, key_id: str, records: Sequence[AuditRecord]) -> None:
        """Raises AccessKeyNotFound, also for a key of another application."""

    async def record_access_key_use(self, key_id: str, now: int, not_before: int) -> None:
        """Record its use unless one since `not_before` is recorded; the time never goes back."""

    async def application_keys(self, application_id: int) -> Sequence[ApplicationKey]:
        """None when the application is unknown or removed, or its project is."""

    async def application_key(self, kid: str) -> ApplicationKey | None:
        """Only of an application that is not removed, in a project that is not removed."""

    async def add_application_key(self, key: ApplicationKey, records: Sequence[AuditRecord]) -> None:
        """Custom keys: raises LimitReached beyond ten."""

    async def delete_application_key(self, application_id: int, kid: str, records: Sequence[AuditRecord]) -> None:
        """Delete a custom key. Raises KeyNotFound."""

    async def add_service_token(self, token: ServiceToken, records: Sequence[AuditRecord]) -> None:
        """Raises ApplicationNotFound."""

    async def service_token(self, jti: str) -> FoundServiceToken | None:
        """Only of an application that is not removed, in a project that is not removed.

        None for one that was issued before a restore or promotion ended all tokens (R3).
        """

    async def service_tokens(self, application_id: int) -> Sequence[ServiceToken]:
        """Return all service tokens, also revoked ones, oldest first."""

    async def revoke_service_token(self, application_id: int, jti: str, records: Sequence[AuditRecord]) -> None:
        """Raises KeyNotFound, also for one of another application."""


class ServiceAccountStore(Protocol):
    async def service_accounts(self, project_id: str) -> Sequence[ServiceAccount]:
        """Return the service accounts of the project, by name."""

    async def create_service_account(
        self, account: ServiceAccount, holdings: Sequence[UserRecord], records: Sequence[AuditRecord]
    ) -> None:
        """Create the user with their permissions. Raises ProjectNotFound, NameTaken, UserIdTaken."""

    async def revoke_service_account(
        self, user_id: str, now: int, records: Sequence[AuditRecord], *, seen: int | None = None
    ) -> None:
        """Revoke a service account; its tokens are refused from now on.

        Raises UserNotFound; VersionConflict as delete_group does.
        """


class FullRemovalStore(Protocol):
    """Storage for the permanent removal of a project, named by id or alias, and everything it owns."""

    async def project_contents(self, project_id: str) -> ErasureCounts:
        """Count what would be deleted. Raises ProjectNotFound, ProjectNotRemoved."""

    async def erase_project(self, project_id: str, entry: Callable[[ErasureCounts], AuditRecord]) -> ErasureCounts:
        """Delete all of it; its ids stay reserved. Raises ProjectNotFound, ProjectNotRemoved."""


class CandidateStore(Protocol):
    """Reads about many people; never in a request that must be fast."""

    async def application_snapshot(
        self, application_id: int, project_ids: Collection[str], *, known: ApplicationModel | None = None
    ) -> ApplicationSnapshot:
        """The application with these projects and those that connect it. Raises ApplicationNotFound.

        `known`: the application as it was read before; while it is the same it is not read again.
        """

    async def candidate_page(
        self,
        among: CandidateFilter,
        project_ids: Collection[str],
        *,
        after: str,
        limit: int,
        known: ApplicationModel | None = None,
    ) -> CandidatePage:
        """The next candidates by user id, all of one state. Raises ApplicationNotFound. `known`: as above."""


class DryRun(Protocol):
    """Stores that run an edit completely, with its errors, and roll it back."""

    @property
    def applications(self) -> ApplicationStore: ...

    @property
    def groups(self) -> GroupStore: ...

    @property
    def projects(self) -> ProjectStore: ...

    @property
    def user_records(self) -> UserRecordStore: ...

    @property
    def state_after(self) -> DryRunResult:
        """Return the state after the last edit, read before its rollback."""


class DryRunStore(Protocol):
    def dry_run(self, application_id: int, project_ids: Collection[str], user_ids: Collection[str]) -> DryRun:
        """Return stores for a dry run that read this application, these projects and users afterwards."""
