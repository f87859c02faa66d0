"""Carries configuration files out (provision/store.py): verbs of other rooms, many of them in one transaction."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from sqlalchemy import and_, bindparam, delete, select

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION, AccountKind, User
from gatehouse.audit.model import AuditRecord
from gatehouse.provision.errors import NoAdministratorLeft
from gatehouse.provision.model import (
    AddClient,
    AddUser,
    ChangeClient,
    ChangeUser,
    ReadScope,
    RemoveUser,
    StoredState,
    Write,
)
from gatehouse.storage.accounts import (
    SETUP_CLOSED,
    all_users,
    delete_user,
    insert_user,
    retired_user_ids,
    update_user,
    users_by_id_or_login,
)
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.installation import set_value_once
from gatehouse.storage.oauth import all_clients, insert_client, removed_client_ids, replace_client
from gatehouse.storage.permissions.held import UNEXPIRED
from gatehouse.storage.permissions.provision import (
    new_role_keys,
    projects_with_groups,
    read_permission_state,
    refuse_too_many_groups,
    run_permission_write,
)
from gatehouse.storage.permissions.records import assign_root_role, touch_record
from gatehouse.storage.permissions.structure_version import begin_structure_change, lock_structure
from gatehouse.storage.permissions.structures import projects_by_id
from gatehouse.storage.runner import SqlStore, snapshot_read, write
from gatehouse.storage.sessions import raise_rev
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.applications import roles
from gatehouse.storage.tables.user_records import role_assignments
from gatehouse.storage.undoing import DryRunRunner

KEEPS_STRUCTURE: Final = (AddUser, ChangeUser, AddClient, ChangeClient)  # what projects and groups are not part of

_IS_ADMINISTRATOR_ROLE = and_(
    role_assignments.c.application_id == CENTRAL_APPLICATION,
    role_assignments.c.role_key == ADMINISTRATOR_ROLE,
    role_assignments.c.project_id == "",
    role_assignments.c.resource_kind == "",
)
ADMINISTRATORS = Statement(select(role_assignments.c.user_id).where(_IS_ADMINISTRATOR_ROLE, UNEXPIRED))
FIND_ACTIVE_ADMINISTRATOR = Statement(
    select(users.c.user_id)
    .join(role_assignments, role_assignments.c.user_id == users.c.user_id)
    .where(_IS_ADMINISTRATOR_ROLE, UNEXPIRED, users.c.kind == AccountKind.PERSON.value, users.c.blocked.is_(False))
    .limit(1)
)
# Whoever may take the role from somebody holds this row: two who take it from two people do not pass each other.
LOCK_ADMINISTRATOR_ROLE = Statement(
    select(roles.c.role_key)
    .where(roles.c.application_id == CENTRAL_APPLICATION, roles.c.role_key == ADMINISTRATOR_ROLE)
    .with_for_update()
)
DROP_ADMINISTRATOR_ROLE = Statement(
    delete(role_assignments)
    .where(_IS_ADMINISTRATOR_ROLE, role_assignments.c.user_id == bindparam("of"))
    .returning(role_assignments.c.user_id)
)


def read_state(scope: ReadScope, now: int) -> Verb[StoredState]:
    holders = yield ADMINISTRATORS(now=now)
    administrators = frozenset(row.user_id for row in holders)
    return StoredState(
        users=tuple((yield from read_accounts(scope, administrators))),
        administrators=administrators,
        retired_user_ids=(yield from retired_user_ids(scope.user_ids)),
        clients=tuple((yield from all_clients())),
        removed_client_ids=(yield from removed_client_ids()),
        permissions=(yield from read_permission_state(scope)),
    )


def read_accounts(scope: ReadScope, administrators: frozenset[str]) -> Verb[Sequence[User]]:
    if scope.all_users:
        return (yield from all_users())
    return (yield from users_by_id_or_login(scope.user_ids | administrators, scope.login_keys))


def write_changes(
    writes: Sequence[Write], records: Sequence[AuditRecord], *, setup_closed: AuditRecord | None, now: int
) -> Verb[None]:
    yield from lock_structure()  # before any row is held, as everywhere
    if any(not isinstance(one, KEEPS_STRUCTURE) for one in writes):
        yield from begin_structure_change()
    yield LOCK_ADMINISTRATOR_ROLE()
    somebody_administered = yield FIND_ACTIVE_ADMINISTRATOR(now=now)
    by = records[0].actor if records else ""
    made = new_role_keys(writes)
    grouped = projects_with_groups(writes)
    before = (yield from projects_by_id(grouped)) if grouped else {}
    for one in writes:
        yield from run_write(one, now, by, made)
    if grouped:
        yield from refuse_too_many_groups(before, grouped)
    if somebody_administered and not (yield FIND_ACTIVE_ADMINISTRATOR(now=now)):
        raise NoAdministratorLeft
    if setup_closed is not None and (yield from set_value_once(SETUP_CLOSED, str(now))):
        yield from add_audit_record(setup_closed)
    for entry in records:
        yield from add_audit_record(entry)


def run_write(one: Write, now: int, by: str, made: Mapping[int, AbstractSet[str]]) -> Verb[None]:
    match one:
        case AddUser(user, administrator):
            yield from insert_user(user)
            yield from set_administrator(user, holds=administrator)
        case ChangeUser(user, administrator, ends_tokens):
            yield from update_user(user)
            if ends_tokens:
                yield from raise_rev(user.user_id, keep=None, now=now)
            if administrator is not None:
                yield from set_administrator(user, holds=administrator)
        case RemoveUser(user):
            yield from delete_user(user, now)
        case AddClient(client):
            yield from insert_client(client)
        case ChangeClient(client):
            yield from replace_client(client)
        case _:
            yield from run_permission_write(one, now, by, made)


def set_administrator(user: User, *, holds: bool) -> Verb[None]:
    # Also one that has expired, which would stand in the way of the new one.
    taken = yield DROP_ADMINISTRATOR_ROLE(of=user.user_id)
    if holds:
        yield from assign_root_role(CENTRAL_APPLICATION, user.user_id, ADMINISTRATOR_ROLE)
    elif taken:
        yield from touch_record(CENTRAL_APPLICATION, user.user_id)


class ProvisionStorage(SqlStore):
    read_state = snapshot_read(read_state)
    write_changes = write(write_changes)

    def as_dry_run(self) -> "ProvisionStorage":
        return ProvisionStorage(DryRunRunner(self.runner, read_nothing))


def read_nothing() -> Verb[None]:
    yield from ()
