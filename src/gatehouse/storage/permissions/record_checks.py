"""Checks before a user record is saved: last owner, last administrator, limits of roles (R5)."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import and_, bindparam, func, or_, select

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION, GUEST_PROVIDER, AccountKind
from gatehouse.permissions.errors import (
    LastOwner,
    NoAdministratorLeft,
    OwnerIsNoPerson,
    ProtectedRoleForGuest,
    RoleFull,
    RoleNotFound,
    VersionConflict,
)
from gatehouse.permissions.model.facts import UserRecord
from gatehouse.permissions.model.rules import End, Scope
from gatehouse.permissions.model.schema import Tree
from gatehouse.storage.permissions.row_readers import ACCOUNT_NOT_ENDED, HOLDS_SEAT, NOT_BANNED_FOR_GOOD, UNEXPIRED
from gatehouse.storage.statements import InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import identities, users
from gatehouse.storage.tables.permissions import role_assignments, roles, user_records
from gatehouse.storage.tables.projects import projects

OWNER_ROLE: Final = "project_owner"

IS_OWNER = and_(
    role_assignments.c.application_id == CENTRAL_APPLICATION,
    role_assignments.c.role_key == OWNER_ROLE,
    role_assignments.c.project_id != "",
    role_assignments.c.resource_kind == "",
)
_OWNERS = (
    select(role_assignments.c.project_id, role_assignments.c.user_id)
    .join(projects, projects.c.project_id == role_assignments.c.project_id)
    .where(IS_OWNER, UNEXPIRED, projects.c.removed.is_(False))
)
# Only owners without an end count: a project must not lose its last owner by expiry (R5).
IS_PERMANENT = or_(role_assignments.c.ttl != 0, role_assignments.c.expired == 0)
OWNED_PROJECTS = Statement(lambda: _OWNERS.where(role_assignments.c.user_id == bindparam("user_id")))
_UNBLOCKED_OWNERS = _OWNERS.join(users, users.c.user_id == role_assignments.c.user_id).where(
    InStringList(role_assignments.c.project_id, "projects"), users.c.blocked.is_(False)
)
OWNERS = Statement(lambda: _UNBLOCKED_OWNERS)
PERMANENT_OWNERS = Statement(lambda: _UNBLOCKED_OWNERS.where(IS_PERMANENT))
# Locked before an owner is removed: two transactions cannot each remove one of the last two.
LOCK_OWNER_ROLE = Statement(
    lambda: (
        select(roles.c.role_key)
        .where(roles.c.application_id == CENTRAL_APPLICATION, roles.c.role_key == OWNER_ROLE)
        .with_for_update()
    )
)


def owners_of(project_ids: Collection[str], now: int) -> Verb[Mapping[str, frozenset[str]]]:
    """Return the unblocked users who own these live projects now."""
    by_project: defaultdict[str, set[str]] = defaultdict(set)
    for row in (yield OWNERS(projects=sorted(project_ids), now=now)):
        by_project[row.project_id].add(row.user_id)
    return {project_id: frozenset(owners) for project_id, owners in by_project.items()}


def refuse_ownerless(before: Collection[str], now: int) -> Verb[None]:
    """Raise LastOwner if one of these projects had permanent owners and has none now."""
    left = {row.project_id for row in (yield PERMANENT_OWNERS(projects=sorted(before), now=now))}
    if lost := sorted(set(before) - left):
        raise LastOwner(f"the last owner of {', '.join(lost)}")


def refuse_last_owner(user_id: str, now: int) -> Verb[None]:
    """Raise LastOwner if a deleted account was the last owner.

    Part of verbs that have deleted it, but not yet its assignments.
    """
    owned = {row.project_id for row in (yield OWNED_PROJECTS(user_id=user_id, now=now))}
    if owned:
        yield LOCK_OWNER_ROLE()
        yield from refuse_ownerless(owned, now)


# Checks of records before they are written: their roles exist, and no limit is exceeded (R5).


IS_SERVICE = Statement(
    lambda: select(users.c.user_id).where(
        users.c.user_id == bindparam("of"), users.c.kind == AccountKind.SERVICE.value
    )
)
IS_GUEST = Statement(
    lambda: select(identities.c.user_id).where(
        identities.c.user_id == bindparam("of"), identities.c.provider == GUEST_PROVIDER
    )
)
_ROLES_BY_KEY = select(roles.c.role_key, roles.c.protected, roles.c.user_limit).where(
    roles.c.application_id == bindparam("application"), InStringList(roles.c.role_key, "keys")
)
ROLES_BY_KEY = Statement(lambda: _ROLES_BY_KEY)
LOCK_ROLES = Statement(lambda: _ROLES_BY_KEY.order_by(roles.c.role_key).with_for_update())
_COUNT_HOLDERS = (
    select(role_assignments.c.role_key, func.count(role_assignments.c.user_id.distinct()).label("holders"))
    .where(role_assignments.c.application_id == bindparam("application"), HOLDS_SEAT)
    .group_by(role_assignments.c.role_key)
)
COUNT_HOLDERS = Statement(lambda: _COUNT_HOLDERS)
REMOVED_PROJECTS = Statement(
    lambda: select(projects.c.project_id).where(
        InStringList(projects.c.project_id, "ids"), projects.c.removed.is_(True)
    )
)
COUNT_HOLDERS_OF = Statement(lambda: _COUNT_HOLDERS.where(InStringList(role_assignments.c.role_key, "keys")))
# Locked before the role is removed: two transactions cannot each remove one of the last two.
LOCK_ADMINISTRATOR_ROLE = Statement(
    lambda: (
        select(roles.c.role_key)
        .where(roles.c.application_id == CENTRAL_APPLICATION, roles.c.role_key == ADMINISTRATOR_ROLE)
        .with_for_update()
    )
)
PERMANENT_ADMINISTRATORS = Statement(
    lambda: (
        select(role_assignments.c.user_id, user_records.c.private_data)
        .join(users, users.c.user_id == role_assignments.c.user_id)
        .join(
            user_records,
            and_(
                user_records.c.user_id == role_assignments.c.user_id,
                user_records.c.application_id == CENTRAL_APPLICATION,
            ),
        )
        .where(
            role_assignments.c.application_id == CENTRAL_APPLICATION,
            role_assignments.c.role_key == ADMINISTRATOR_ROLE,
            role_assignments.c.project_id == "",
            users.c.blocked.is_(False),
            NOT_BANNED_FOR_GOOD,
            IS_PERMANENT,
            ACCOUNT_NOT_ENDED,
        )
    )
)


class RecordChange(Struct, frozen=True):
    """A record before and after a change."""

    before: UserRecord
    after: UserRecord


class SeatsTaken(Struct, frozen=True):
    """The limit of one role, and the users who newly take a seat."""

    limit: int
    takers: tuple[str, ...]


def seats_taken(application_id: int, steps: Sequence[RecordChange], now: int) -> Verb[Mapping[str, SeatsTaken]]:
    """Return the newly assigned roles with a limit, by key. Raises RoleNotFound, VersionConflict."""
    named = {role for step in steps for _, role in _assigned_roles(step.after)}
    if not named:
        return {}
    known = {row.role_key: row for row in (yield ROLES_BY_KEY(application=application_id, keys=sorted(named)))}
    if gone := sorted(named - known.keys()):
        raise RoleNotFound(", ".join(gone))
    for step in steps:
        _refuse_protected_below(step, known)
        yield from _refuse_protected_guest(step, known)
    limited = {key for key, row in known.items() if row.user_limit}
    removed = (yield from _removed_projects(steps)) if limited else frozenset()
    takers: defaultdict[str, list[str]] = defaultdict(list)
    for step in steps:
        for role in limited & (_holding(step.after, now, removed) - _holding(step.before, now, removed)):
            takers[role].append(step.after.user_id)
    return {role: SeatsTaken(known[role].user_limit, tuple(who)) for role, who in takers.items()}


def _removed_projects(steps: Sequence[RecordChange]) -> Verb[frozenset[str]]:
    """Return the removed projects that the records mention; assignments in them take no seat."""
    named = {
        scope.project_id for step in steps for record in (step.before, step.after) for scope in record.scopes
    } - {""}
    rows = (yield REMOVED_PROJECTS(ids=sorted(named))) if named else ()
    return frozenset(row.project_id for row in rows)


def _refuse_protected_below(step: RecordChange, known: Mapping[str, Row]) -> None:
    """Refuse protected roles below the root.

    The edit has checked this, but a role may have become protected since.
    """
    for scope, role in _assigned_roles(step.after) - _assigned_roles(step.before):
        if not scope.is_root and known[role].protected:
            raise VersionConflict(f"{role} is protected now")


def _refuse_protected_guest(step: RecordChange, known: Mapping[str, Row]) -> Verb[None]:
    """Refuse to give a guest a protected role (R10)."""
    new_roles = {
        role for _, role in _assigned_roles(step.after) - _assigned_roles(step.before) if known[role].protected
    }
    if new_roles and (yield IS_GUEST(of=step.after.user_id)):
        raise ProtectedRoleForGuest(f"guest {step.after.user_id}: {', '.join(sorted(new_roles))}")


def refuse_service_owner(step: RecordChange) -> Verb[None]:
    """Refuse a service account as owner of a project (R1)."""
    new_assignments = (
        _assigned_roles(step.after) - _assigned_roles(step.before)
        if step.after.application_id == CENTRAL_APPLICATION
        else set()
    )
    if any(role == OWNER_ROLE for _, role in new_assignments) and (yield IS_SERVICE(of=step.after.user_id)):
        raise OwnerIsNoPerson(f"service account {step.after.user_id}")


def lock_if_administrator_lost(steps: Sequence[RecordChange], now: int) -> Verb[bool]:
    """Whether an administrator loses the role now or at a set end; locks the administrators if so."""
    lost = any(_administers(step.before, now) - _administers(step.after, now) for step in steps)
    if lost:
        yield LOCK_ADMINISTRATOR_ROLE()
    return lost


def refuse_no_administrator() -> Verb[None]:
    """Raise NoAdministratorLeft unless an administrator without an end is left."""
    if all(_is_denied(row.private_data) for row in (yield PERMANENT_ADMINISTRATORS())):
        raise NoAdministratorLeft


def _administers(record: UserRecord, now: int) -> set[End]:
    """Return the end of each administrator role of the record; empty without one."""
    if record.application_id != CENTRAL_APPLICATION or _is_denied(record.root.private_data):
        return set()
    return {role.end for role in record.root.roles if role.role == ADMINISTRATOR_ROLE and not role.end.is_past(now)}


def _is_denied(private_data: Tree) -> bool:
    """Whether a direct entry denies the right; it wins over the role, and its end is ignored."""
    entry = private_data.get("can_administer")
    return isinstance(entry, Mapping) and entry.get("value") is not True


def refuse_full_roles(application_id: int, taken: Mapping[str, SeatsTaken], now: int) -> Verb[None]:
    if not taken:
        return
    for row in (yield COUNT_HOLDERS_OF(application=application_id, keys=sorted(taken), now=now)):
        role, seats = row.role_key, taken[row.role_key]
        if row.holders > seats.limit:
            whom = ", ".join(f"user {user_id}" for user_id in seats.takers)
            raise RoleFull(
                f"application {application_id}: user_limit of the role {role} is {seats.limit}, no room for {whom}"
            )


def count_role_holders(application_id: int, now: int) -> Verb[Mapping[str, int]]:
    rows = yield COUNT_HOLDERS(application=application_id, now=now)
    return {row.role_key: row.holders for row in rows}


def count_holders_of_roles(application_id: int, keys: Collection[str], now: int) -> Verb[Mapping[str, int]]:
    rows = yield COUNT_HOLDERS_OF(application=application_id, keys=sorted(keys), now=now)
    return {row.role_key: row.holders for row in rows}


def _assigned_roles(record: UserRecord) -> set[tuple[Scope, str]]:
    return {(scope, assignment.role) for scope, holdings in record.scopes.items() for assignment in holdings.roles}


def _holding(record: UserRecord, now: int, removed: Collection[str]) -> set[str]:
    return {
        assignment.role
        for scope, holdings in record.scopes.items()
        if scope.project_id not in removed
        for assignment in holdings.roles
        if not assignment.end.is_past(now)
    }


def owned_projects(record: UserRecord, now: int) -> set[tuple[str, End]]:
    """Return the owned projects, each with its end."""
    if record.application_id != CENTRAL_APPLICATION:
        return set()
    return {
        (scope.project_id, assignment.end)
        for scope, holdings in record.scopes.items()
        if not scope.is_root and scope == scope.project
        for assignment in holdings.roles
        if assignment.role == OWNER_ROLE and not assignment.end.is_past(now)
    }
