"""Carries configuration files out (provision/store.py): verbs of other rooms, many of them in one transaction."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from sqlalchemy import and_, bindparam, delete, select

from gatehouse.accounts.model import ADMINISTRATOR, CENTRAL, Kind, User
from gatehouse.audit.model import Record
from gatehouse.provision.errors import LastAdministrator
from gatehouse.provision.model import (
    Act,
    AddClient,
    AddUser,
    ChangeClient,
    ChangeUser,
    RemoveUser,
    Scope,
    State,
)
from gatehouse.storage.accounts import (
    SETUP_CLOSED,
    add_user,
    all_users,
    change_user,
    named_users,
    remove_user,
    retired_ids,
)
from gatehouse.storage.audit import record
from gatehouse.storage.installation import state_once
from gatehouse.storage.oauth import add_client, all_clients, change_client, removed_ids
from gatehouse.storage.permissions.held import UNEXPIRED
from gatehouse.storage.permissions.provision import (
    projects_with_groups,
    read_world,
    refuse_overfull,
    roles_made,
    run_permission_write,
)
from gatehouse.storage.permissions.records import assign_root_role, touch_record
from gatehouse.storage.permissions.structure_version import change_structure, hold_structure_alone
from gatehouse.storage.permissions.structures import projects_of
from gatehouse.storage.runner import Stored, act, survey
from gatehouse.storage.sessions import raise_rev
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.applications import roles
from gatehouse.storage.tables.user_records import role_assignments
from gatehouse.storage.undoing import UndoingRunner

LEAVES_STRUCTURE: Final = (AddUser, ChangeUser, AddClient, ChangeClient)  # what projects and groups are not part of

_ROLE = and_(
    role_assignments.c.application_id == CENTRAL,
    role_assignments.c.role_key == ADMINISTRATOR,
    role_assignments.c.project_id == "",
    role_assignments.c.resource_kind == "",
)
HOLDERS = Statement(select(role_assignments.c.user_id).where(_ROLE, UNEXPIRED))
ADMINISTERING = Statement(
    select(users.c.user_id)
    .join(role_assignments, role_assignments.c.user_id == users.c.user_id)
    .where(_ROLE, UNEXPIRED, users.c.kind == Kind.PERSON.value, users.c.blocked.is_(False))
    .limit(1)
)
# Whoever may take the role from somebody holds this row: two who take it from two people do not pass each other.
LOCK_ROLE = Statement(
    select(roles.c.role_key)
    .where(roles.c.application_id == CENTRAL, roles.c.role_key == ADMINISTRATOR)
    .with_for_update()
)
TAKE_ROLE = Statement(
    delete(role_assignments)
    .where(_ROLE, role_assignments.c.user_id == bindparam("of"))
    .returning(role_assignments.c.user_id)
)


def state(scope: Scope, now: int) -> Verb[State]:
    holders = yield HOLDERS(now=now)
    administrators = frozenset(row.user_id for row in holders)
    return State(
        users=tuple((yield from accounts(scope, administrators))),
        administrators=administrators,
        retired_user_ids=(yield from retired_ids(scope.user_ids)),
        clients=tuple((yield from all_clients())),
        removed_client_ids=(yield from removed_ids()),
        world=(yield from read_world(scope)),
    )


def accounts(scope: Scope, administrators: frozenset[str]) -> Verb[Sequence[User]]:
    if scope.all_users:
        return (yield from all_users())
    return (yield from named_users(scope.user_ids | administrators, scope.login_keys))


def carry_out(acts: Sequence[Act], records: Sequence[Record], *, setup_closed: Record | None, now: int) -> Verb[None]:
    yield from hold_structure_alone()  # before any row is held, as everywhere
    if any(not isinstance(one, LEAVES_STRUCTURE) for one in acts):
        yield from change_structure()
    yield LOCK_ROLE()
    somebody_administered = yield ADMINISTERING(now=now)
    by = records[0].actor if records else ""
    made = roles_made(acts)
    grouped = projects_with_groups(acts)
    before = (yield from projects_of(grouped)) if grouped else {}
    for one in acts:
        yield from do(one, now, by, made)
    if grouped:
        yield from refuse_overfull(before, grouped)
    if somebody_administered and not (yield ADMINISTERING(now=now)):
        raise LastAdministrator
    if setup_closed is not None and (yield from state_once(SETUP_CLOSED, str(now))):
        yield from record(setup_closed)
    for entry in records:
        yield from record(entry)


def do(one: Act, now: int, by: str, made: Mapping[int, AbstractSet[str]]) -> Verb[None]:
    match one:
        case AddUser(user, administrator):
            yield from add_user(user)
            yield from give_role(user, holds=administrator)
        case ChangeUser(user, administrator, ends_tokens):
            yield from change_user(user)
            if ends_tokens:
                yield from raise_rev(user.user_id, keep=None, now=now)
            if administrator is not None:
                yield from give_role(user, holds=administrator)
        case RemoveUser(user):
            yield from remove_user(user, now)
        case AddClient(client):
            yield from add_client(client)
        case ChangeClient(client):
            yield from change_client(client)
        case _:
            yield from run_permission_write(one, now, by, made)


def give_role(user: User, *, holds: bool) -> Verb[None]:
    # Also one that has expired, which would stand in the way of the new one.
    taken = yield TAKE_ROLE(of=user.user_id)
    if holds:
        yield from assign_root_role(CENTRAL, user.user_id, ADMINISTRATOR)
    elif taken:
        yield from touch_record(CENTRAL, user.user_id)


class ProvisionStorage(Stored):
    state = survey(state)
    carry_out = act(carry_out)

    def undone(self) -> "ProvisionStorage":
        return ProvisionStorage(UndoingRunner(self.runner, nothing))


def nothing() -> Verb[None]:
    yield from ()
