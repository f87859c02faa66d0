"""Reads and changes the permission model for configuration files (provision/model.py)."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeVar, assert_never

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Table, Text, and_, bindparam, delete, func, select, union

from gatehouse.accounts.bans.model import NO_CONTACTS, PersonBanned, VerifiedContacts
from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION, AccountKind, User
from gatehouse.images.model import (
    StoredImage,
    application_logo_owner,
    client_logo_owner,
    picture_owner,
    setting_image_owner,
)
from gatehouse.kernel.errors import GatehouseError
from gatehouse.permissions.documents.limits import refuse_groups
from gatehouse.permissions.errors import GroupListed, GroupsFull, Malformed, NoAdministratorLeft, VersionConflict
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.permissions.model.application import Application, ApplicationKey
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel, UserRecord
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.schema_version import ChangeTally
from gatehouse.permissions.store import Change, EditResult, NewApplication
from gatehouse.provision.model import (
    AddApplication,
    AddClient,
    AddGroup,
    AddProject,
    AddPublicKey,
    AddServiceAccount,
    AddUser,
    ChangeApplication,
    ChangeClient,
    ChangeGroup,
    ChangeProject,
    ChangeRecords,
    ChangeSchema,
    ChangeServiceAccount,
    ChangeUser,
    FileRun,
    OnProgress,
    PermissionState,
    PermissionWrite,
    Plan,
    PlanAudit,
    PutAccessKey,
    PutBan,
    PutImage,
    PutSetting,
    ReadScope,
    RemoveGroup,
    RemoveUser,
    SingleWrite,
    StoredState,
    Unfit,
    Write,
    ignore_progress,
)
from gatehouse.storage.accounts.ban_aware import BanAwareStore, BanFollower, write_with_bans
from gatehouse.storage.accounts.ban_copies import ANY_DIGEST
from gatehouse.storage.accounts.bans import active_bans, put_ban
from gatehouse.storage.accounts.erasure import delete_user
from gatehouse.storage.accounts.sessions import raise_rev
from gatehouse.storage.accounts.users import (
    SETUP_CLOSED,
    all_users,
    insert_new_users,
    retired_user_ids,
    update_user,
    username_owners,
    users_by_id_or_login,
)
from gatehouse.storage.audit import add_audit_record, add_audit_records
from gatehouse.storage.dry_run import DryRunRunner, read_nothing
from gatehouse.storage.images import read_images, set_image
from gatehouse.storage.installation import set_value_once
from gatehouse.storage.oauth.clients import all_clients, insert_client, removed_client_ids, replace_client
from gatehouse.storage.permissions import service_accounts
from gatehouse.storage.permissions.applications import (
    add_application,
    edit_application,
    reserve_id,
    used_application_ids,
)
from gatehouse.storage.permissions.groups import (
    create_group,
    delete_group,
    edit_group,
    loses_project_tag,
    refuse_listed,
)
from gatehouse.storage.permissions.keys import (
    add_access_key,
    add_application_key,
    all_access_keys,
    all_custom_keys,
    delete_access_key,
)
from gatehouse.storage.permissions.project_models import all_projects, group_by_id, projects_by_id
from gatehouse.storage.permissions.projects import add_project, edit_project
from gatehouse.storage.permissions.record_checks import LOCK_ADMINISTRATOR_ROLE
from gatehouse.storage.permissions.row_readers import NOT_BANNED, UNEXPIRED, holdings_statement, records_by_user
from gatehouse.storage.permissions.schemas import all_application_models, edit_schema
from gatehouse.storage.permissions.structure import lock_structure
from gatehouse.storage.permissions.user_records import assign_root_role, edit_records, touch_record
from gatehouse.storage.runner import snapshot_read
from gatehouse.storage.settings import put_stored_setting, read_stored_settings
from gatehouse.storage.statements import DialectFunction, InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.permissions import role_assignments, scope_records
from gatehouse.storage.tables.projects import project_names, projects

T = TypeVar("T")

_PROJECTS = union(
    select(project_names.c.project_id).where(InStringList(project_names.c.name, "names")),
    select(projects.c.project_id).where(InStringList(projects.c.title_key, "names")),
).subquery()


def _in_named_projects(table: Table) -> ColumnElement[bool]:
    return table.c.project_id.in_(select(_PROJECTS.c.project_id))


MEMBERS = Statement(
    lambda: select(
        union(
            *(
                select(table.c.user_id).where(
                    table.c.application_id == CENTRAL_APPLICATION, _in_named_projects(table)
                )
                for table in (role_assignments, scope_records)
            )
        )
        .subquery()
        .c.user_id
    )
)


ALL_HELD = holdings_statement(lambda _: ())
HELD_BY = holdings_statement(lambda table: (InStringList(table.c.user_id, "users"),))


# -- reading ------------------------------------------------------------------------------------------


def read_permission_state(scope: ReadScope) -> Verb[PermissionState]:
    """Return the state in scope, as the surrounding transaction sees it."""
    if not scope.permissions:
        return PermissionState()
    accounts = yield from service_accounts.all_service_accounts()
    access_keys = yield from all_access_keys()
    public_keys = yield from all_custom_keys()
    return PermissionState(
        projects=(yield from all_projects()),
        applications=(yield from all_application_models()),
        spent_application_ids=(yield from used_application_ids()),
        access_keys=_by_application(access_keys),
        public_keys=_by_application(public_keys),
        service_accounts={account.user_id: account for account in accounts},
        records=(yield from _records(scope)),
    )


K = TypeVar("K", AccessKey, ApplicationKey)


def _by_application(keys: Iterable[K]) -> dict[int, tuple[K, ...]]:
    by_application: defaultdict[int, list[K]] = defaultdict(list)
    for key in keys:
        by_application[key.application_id].append(key)
    return {number: tuple(application_keys) for number, application_keys in by_application.items()}


def _records(scope: ReadScope) -> Verb[Mapping[tuple[int, str], UserRecord]]:
    if scope.all_records:
        rows = yield ALL_HELD()
    else:
        members = yield MEMBERS(names=sorted(scope.member_projects))
        rows = yield HELD_BY(users=sorted(scope.record_users | {row.user_id for row in members}))
    return records_by_user(rows[0])


# -- changing -----------------------------------------------------------------------------------------


def refuse_invalid_groups(before: Mapping[str, ProjectModel], named: Collection[str]) -> Verb[None]:
    """Check groups when all writes are done: a file may add some before it removes others, or unlist them later.

    Raises GroupsFull, GroupListed, Malformed, each naming the project.
    """
    after = yield from projects_by_id(named)
    for project_id, model in sorted(after.items()):
        had = before[project_id].groups if project_id in before else {}
        try:
            refuse_groups(had.values(), model.groups.values())
            for group_id in had.keys() & model.groups.keys():
                if loses_project_tag(had[group_id], model.groups[group_id]):
                    refuse_listed(model.project, group_id)
        except GroupListed as error:
            raise GroupListed(f"project {project_id}: {error.public}") from None
        except (GroupsFull, Malformed) as error:
            raise type(error)(f"project {project_id}: {error}") from None


def run_permission_write(write: PermissionWrite, now: int, by: str) -> Verb[None]:
    """Run one write; part of the verb that applies a file.

    Raises VersionConflict if the record changed since it was read.
    """
    match write:
        case AddProject() | ChangeProject() | AddGroup() | ChangeGroup() | RemoveGroup():
            yield from _run_structure_write(write)
        case AddApplication() | ChangeApplication() | ChangeSchema() | PutAccessKey() | AddPublicKey():
            yield from _run_application_write(write, by)
        case AddServiceAccount(account):
            yield from service_accounts.create_service_account(account, (), ())
        case ChangeServiceAccount(account_before, account):
            yield from service_accounts.update_service_account(account_before, account, now)
        case _:
            assert_never(write)


def _run_structure_write(write: AddProject | ChangeProject | AddGroup | ChangeGroup | RemoveGroup) -> Verb[None]:
    match write:
        case AddProject(project):
            yield from add_project(project)
        case ChangeProject(before, after):

            def change(state: ProjectModel) -> EditResult[ProjectModel]:
                _refuse_changed(state.project, before)
                return EditResult(replace(state, project=after), ())

            yield from edit_project(before.project_id, change)
        case AddGroup(new):
            yield from create_group(new, ())
        case ChangeGroup(old, wanted):
            yield from edit_group(old.group_id, _replace_if_unchanged(old, wanted))
        case RemoveGroup(gone):
            yield from _remove_group(gone)
        case _:
            assert_never(write)


def _remove_group(gone: Group) -> Verb[None]:
    _refuse_changed((yield from group_by_id(gone.group_id)), gone)
    yield from delete_group(gone.group_id, ())


def _run_application_write(
    write: AddApplication | ChangeApplication | ChangeSchema | PutAccessKey | AddPublicKey, by: str
) -> Verb[None]:
    match write:
        case AddApplication(model):
            if not (yield from reserve_id(model.application.application_id)):
                raise VersionConflict(f"the ID {model.application.application_id} was used in the meantime")
            roles = tuple(model.roles.values())
            yield from add_application(
                NewApplication(application=model.application, schema=model.schema, roles=roles)
            )
        case ChangeApplication(before, after):
            yield from edit_application(before.application_id, _replace_if_unchanged(before, after))
        case ChangeSchema(model_before, wanted, changes):
            yield from edit_schema(
                model_before.application.application_id,
                _replace_schema_if_unchanged(model_before, wanted, changes),
                actor=by,
                may_remove=True,
            )
        case PutAccessKey(old, key):
            if old is not None:
                yield from delete_access_key(old.application_id, old.key_id, ())
            yield from add_access_key(key, ())
        case AddPublicKey(public):
            yield from add_application_key(public, ())
        case _:
            assert_never(write)


def _replace_schema_if_unchanged(
    before: ApplicationModel, after: ApplicationModel, changes: Sequence[ChangeTally]
) -> Change[ApplicationModel]:
    def change(state: ApplicationModel) -> EditResult[ApplicationModel]:
        _refuse_changed(state.schema, before.schema)
        if {key: _without_version(role) for key, role in state.roles.items()} != {
            key: _without_version(role) for key, role in before.roles.items()
        }:
            raise VersionConflict
        return EditResult(after, (), changes)

    return change


Versioned = TypeVar("Versioned", Application, Group, UserRecord)


def _replace_if_unchanged(before: Versioned, after: Versioned) -> Change[Versioned]:
    def change(state: Versioned) -> EditResult[Versioned]:
        _refuse_changed(state, before)
        return EditResult(after, ())

    return change


def _refuse_changed(state: object, before: object) -> None:
    """Refuse a record whose content changed; its version may differ by an earlier step of the same file."""
    if _without_version(state) != _without_version(before):
        raise VersionConflict


def _without_version(record: T) -> T:
    return replace(record, version=0)  # type: ignore[type-var]


# Apply configuration files (provision/model.py): verbs of other packages in one transaction.


# What projects and groups are not part of.
KEEPS_STRUCTURE: Final = (AddUser, ChangeUser, AddClient, ChangeClient, PutSetting, PutBan, PutImage)

_IS_ADMINISTRATOR_ROLE = and_(
    role_assignments.c.application_id == CENTRAL_APPLICATION,
    role_assignments.c.role_key == ADMINISTRATOR_ROLE,
    role_assignments.c.project_id == "",
    role_assignments.c.resource_kind == "",
)
ADMINISTRATORS = Statement(lambda: select(role_assignments.c.user_id).where(_IS_ADMINISTRATOR_ROLE, UNEXPIRED))
FIND_ACTIVE_ADMINISTRATOR = Statement(
    lambda: (
        select(users.c.user_id)
        .join(role_assignments, role_assignments.c.user_id == users.c.user_id)
        .where(
            _IS_ADMINISTRATOR_ROLE, UNEXPIRED, users.c.kind == AccountKind.PERSON.value, users.c.blocked.is_(False)
        )
        .where(NOT_BANNED)
        .limit(1)
    )
)
DROP_ADMINISTRATOR_ROLE = Statement(
    lambda: (
        delete(role_assignments)
        .where(_IS_ADMINISTRATOR_ROLE, role_assignments.c.user_id == bindparam("of"))
        .returning(role_assignments.c.user_id)
    )
)


def images_of_state(state: StoredState, *, contents: bool) -> Verb[Mapping[str, StoredImage]]:
    """Return the images that a configuration file may name: `contents` with that of logos, never of pictures."""
    applications = (model.application for model in state.permissions.applications.values())
    logos = [
        *(client_logo_owner(client.client_id) for client in state.clients if client.logo),
        *(application_logo_owner(application.application_id) for application in applications if application.logo),
        *map(setting_image_owner, state.settings),
    ]
    pictures = [picture_owner(user.user_id) for user in state.users if user.picture]
    logo_images = yield from read_images(logos, contents=contents)
    return {**logo_images, **(yield from read_images(pictures, contents=False))}


def read_state(scope: ReadScope, now: int) -> Verb[StoredState]:
    holders = yield ADMINISTRATORS(now=now)
    administrators = frozenset(row.user_id for row in holders)
    state = StoredState(
        users=tuple((yield from read_accounts(scope, administrators))),
        administrators=administrators,
        retired_user_ids=(yield from retired_user_ids(scope.user_ids)),
        username_owners=(yield from username_owners(scope.usernames)),
        # Clients with a metadata document change with it alone: no file names or prunes them (R9).
        clients=tuple(client for client in (yield from all_clients()) if not client.has_document),
        removed_client_ids=(yield from removed_client_ids()),
        permissions=(yield from read_permission_state(scope)),
        settings=(yield from read_stored_settings()),
        bans=tuple((yield from active_bans(now))) if scope.bans else (),
    )
    return replace(state, images=(yield from images_of_state(state, contents=scope.logo_contents)))


def read_accounts(scope: ReadScope, administrators: frozenset[str]) -> Verb[Sequence[User]]:
    if scope.all_users:
        return (yield from all_users())
    return (yield from users_by_id_or_login(scope.user_ids | administrators, scope.login_keys))


def read_state_after(before: StoredState, writes: Sequence[Write], scope: ReadScope, now: int) -> Verb[StoredState]:
    """Read what later sections refer to, if the writes changed it: accounts and permissions."""
    if any(isinstance(write, AddUser | ChangeUser | RemoveUser) for write in writes):
        return (yield from read_state(scope, now))
    if all(isinstance(write, KEEPS_STRUCTURE) for write in writes):
        return before
    return replace(before, permissions=(yield from read_permission_state(scope)))


class IdleLimit(DialectFunction[str]):
    """How long the transaction may wait for its next statement; SQLite has no such limit."""

    inherit_cache = True
    type = Text()
    on_postgres = "{0}"
    on_sqlite = "''"


# A section of many entries is planned between two statements.
ALLOW_PLANNING = Statement(
    lambda: select(IdleLimit(func.set_config("idle_in_transaction_session_timeout", "60s", True)).label("idle_limit"))
)


def run_file(
    bans: BanFollower,
    start: Callable[[StoredState], FileRun],
    scope: ReadScope,
    audit: Callable[[Plan], PlanAudit],
    *,
    by: str,
    now: int,
    on_progress: OnProgress = ignore_progress,
) -> Verb[Plan]:
    yield ALLOW_PLANNING()
    yield from lock_structure()  # before any row is locked, as everywhere
    yield LOCK_ADMINISTRATOR_ROLE()
    somebody_administered = yield FIND_ACTIVE_ADMINISTRATOR(now=now)
    state = yield from read_state(scope, now)
    writer = FileWriter(bans, state, now=now, by=by, on_progress=on_progress)
    run = start(state)
    try:
        writes = next(run)
        while True:
            try:
                if writes:
                    yield from writer.write_section(writes)
                    state = yield from read_state_after(state, writes, scope, now)
            except GatehouseError as error:
                writes = run.throw(error)
            else:
                writes = run.send(state)
    except StopIteration as end:
        plan: Plan = end.value
    if not plan.changes:
        return plan
    yield from writer.finish()
    if somebody_administered and not (yield FIND_ACTIVE_ADMINISTRATOR(now=now)):
        raise NoAdministratorLeft
    audited = audit(plan)
    if audited.setup_closed is not None and (yield from set_value_once(SETUP_CLOSED, str(now))):
        yield from add_audit_record(audited.setup_closed)
    yield from add_audit_records(audited.records)
    return plan


class FileWriter:
    """The writes of one file."""

    def __init__(self, bans: BanFollower, before: StoredState, *, now: int, by: str, on_progress: OnProgress) -> None:
        self._bans = bans
        self._before = before.permissions.projects
        self._now = now
        self._by = by
        self._on_progress = on_progress
        self._projects_with_groups: set[str] = set()  # in which the file creates or changes groups
        self._accounts: list[tuple[AddUser | ChangeUser, VerifiedContacts]] = []  # with the former ones
        # The roles that the file creates: the people it names get them whatever the limit. So an export can be
        # applied even if a role's limit was lowered below the number of its users (R5, R7).
        self._new_roles: defaultdict[int, set[str]] = defaultdict(set)

    def write_section(self, writes: Sequence[Write]) -> Verb[None]:
        reached = 0
        for batch in batches(writes):
            yield from self._write_batch(batch)
            reached += len(batch)
            self._on_progress(reached)

    def _write_batch(self, batch: Sequence[Write]) -> Verb[None]:
        for write in batch:
            yield from self._prepare(write)
        match batch[0]:
            case AddUser():
                yield from add_users([write for write in batch if isinstance(write, AddUser)])
            case ChangeRecords(before):
                number = before[0].application_id
                changes = record_changes(write for write in batch if isinstance(write, ChangeRecords))
                yield from edit_records(number, changes, self._now, new_roles=self._new_roles[number])
            case write:
                yield from run_write(self._bans, write, self._now, self._by)

    def finish(self) -> Verb[None]:
        """Copy the bans that match new and changed accounts, which hold by now what the file gives them (R14).

        Raises Unfit with everyone who is banned from the installation.
        """
        problems: list[str] = []
        bans_follow = bool(self._accounts) and bool((yield ANY_DIGEST()))
        for write, former in self._accounts:
            if isinstance(write, ChangeUser):
                yield from self._bans.contacts_changed(write.user.user_id, former, self._now)
                continue
            if not bans_follow:
                continue
            try:
                yield from self._bans.apply_to(write.user.user_id, self._now, new=True)
            except PersonBanned as banned:
                name = write.user.login or write.user.user_id
                problems.append(f"users: {name}: {banned.public} It is ban {banned.ban.ban_id}.")
        if problems:
            raise Unfit(problems)
        if self._projects_with_groups:
            yield from refuse_invalid_groups(self._before, self._projects_with_groups)

    def _prepare(self, write: Write) -> Verb[None]:
        match write:
            case AddUser():
                self._accounts.append((write, NO_CONTACTS))
            case ChangeUser(user):
                self._accounts.append((write, (yield from self._bans.verified_contacts(user.user_id))))
            case AddApplication(model):
                self._new_roles[model.application.application_id] |= model.roles.keys()
            case ChangeSchema(before, after):
                self._new_roles[after.application.application_id] |= after.roles.keys() - before.roles.keys()
            case AddGroup(group) | ChangeGroup(_, group):
                self._projects_with_groups.add(group.project_id)


BATCH: Final = 500  # writes that are made together


def batches(writes: Iterable[Write]) -> Iterator[Sequence[Write]]:
    """Yield writes that follow each other together where a few statements make all of them."""
    for _, group in groupby(writes, batch_key):
        batch = list(group)
        for start in range(0, len(batch), BATCH):
            yield batch[start : start + BATCH]


def batch_key(write: Write) -> object:
    match write:
        case AddUser():
            return AddUser
        case ChangeRecords(before):
            return before[0].application_id
    return id(write)  # by itself


def add_users(added: Sequence[AddUser]) -> Verb[None]:
    yield from insert_new_users([write.user for write in added])
    for write in added:
        if write.administrator:
            yield from assign_root_role(CENTRAL_APPLICATION, write.user.user_id, ADMINISTRATOR_ROLE)


def record_changes(writes: Iterable[ChangeRecords]) -> Mapping[str, Change[UserRecord]]:
    """Return the changes of records of one application, by user; several of one record follow each other."""
    changes: dict[str, Change[UserRecord]] = {}
    for write in writes:
        for before, after in zip(write.before, write.after, strict=True):
            change = _replace_if_unchanged(before, after)
            earlier = changes.get(before.user_id)
            changes[before.user_id] = change if earlier is None else _one_after_other(earlier, change)
    return changes


def _one_after_other(first: Change[UserRecord], second: Change[UserRecord]) -> Change[UserRecord]:
    return lambda state: second(first(state).state)


def run_write(bans: BanFollower, write: SingleWrite, now: int, by: str) -> Verb[None]:
    match write:
        case ChangeUser(user, administrator, ends_tokens):
            yield from update_user(user)
            if ends_tokens:
                yield from raise_rev(user.user_id, keep=None, now=now)
            yield from set_administrator(user, holds=administrator)
        case RemoveUser(user):
            yield from delete_user(bans, user, now)
        case AddClient(client):
            yield from insert_client(client)
        case PutSetting(name, setting):
            yield from put_stored_setting(name, setting, now)
        case PutBan(before, after):
            yield from put_ban(bans, before, after, by=by, now=now)
        case PutImage(owner, image):
            yield from set_image(owner, image, now)
        case ChangeClient(client):
            yield from replace_client(client)
        case _:
            yield from run_permission_write(write, now, by)


def set_administrator(user: User, *, holds: bool | None) -> Verb[None]:
    if holds is None:  # the role stays as it is
        return
    # Expired ones too, which would block the new one.
    taken = yield DROP_ADMINISTRATOR_ROLE(of=user.user_id)
    if holds:
        yield from assign_root_role(CENTRAL_APPLICATION, user.user_id, ADMINISTRATOR_ROLE)
    elif taken:
        yield from touch_record(CENTRAL_APPLICATION, user.user_id)


class ProvisionStorage(BanAwareStore):
    read_state = snapshot_read(read_state)
    run_file = write_with_bans(run_file)

    def as_dry_run(self) -> "ProvisionStorage":
        return ProvisionStorage(DryRunRunner(self.runner, read_nothing), self.bans)
