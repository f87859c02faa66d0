"""What must hold of records that are about to be written: their roles exist, no limit is exceeded (R5)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import and_, bindparam, func, select

from gatehouse.accounts.model import ADMINISTRATOR, Kind
from gatehouse.permissions.errors import NobodyAdministers, OwnerIsNoPerson, RoleFull, RoleNotFound, VersionConflict
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.rule import End
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.model.scope import Scope
from gatehouse.permissions.model.user_record import UserRecord
from gatehouse.storage.permissions.held import UNEXPIRED
from gatehouse.storage.permissions.owners import LASTING, OWNER
from gatehouse.storage.statements import AnyOf, Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.applications import roles
from gatehouse.storage.tables.user_records import role_assignments, user_records

IS_SERVICE = Statement(
    select(users.c.user_id).where(users.c.user_id == bindparam("of"), users.c.kind == Kind.SERVICE.value)
)
_NAMED_ROLES = select(roles.c.role_key, roles.c.protected, roles.c.user_limit).where(
    roles.c.application_id == bindparam("application"), AnyOf(roles.c.role_key, "keys")
)
NAMED_ROLES = Statement(_NAMED_ROLES)
HOLD_ROLES = Statement(_NAMED_ROLES.order_by(roles.c.role_key).with_for_update())
_HOLDERS = (
    select(role_assignments.c.role_key, func.count(role_assignments.c.user_id.distinct()).label("holders"))
    .where(role_assignments.c.application_id == bindparam("application"), UNEXPIRED)
    .group_by(role_assignments.c.role_key)
)
HOLDERS = Statement(_HOLDERS)
HOLDERS_OF = Statement(_HOLDERS.where(AnyOf(role_assignments.c.role_key, "keys")))
# Whoever takes the role from somebody holds this row: two who take it from the last two do not pass each other.
HOLD_ADMINISTRATORS = Statement(
    select(roles.c.role_key)
    .where(roles.c.application_id == CENTRAL_ID, roles.c.role_key == ADMINISTRATOR)
    .with_for_update()
)
ADMINISTRATORS_THAT_STAY = Statement(
    select(role_assignments.c.user_id, user_records.c.private_data)
    .join(users, users.c.user_id == role_assignments.c.user_id)
    .join(
        user_records,
        and_(user_records.c.user_id == role_assignments.c.user_id, user_records.c.application_id == CENTRAL_ID),
    )
    .where(
        role_assignments.c.application_id == CENTRAL_ID,
        role_assignments.c.role_key == ADMINISTRATOR,
        role_assignments.c.project_id == "",
        users.c.blocked.is_(False),
        LASTING,
    )
)


@dataclass(frozen=True, slots=True)
class Step:
    """A record as it was and as it is to be."""

    before: UserRecord
    after: UserRecord


def limits_met(application_id: int, steps: Sequence[Step], now: int) -> Verb[Mapping[str, int]]:
    """The limits of limited roles that somebody newly gets. Raises RoleNotFound, VersionConflict."""
    named = {role for step in steps for _, role in _assigned(step.after)}
    if not named:
        return {}
    known = {row.role_key: row for row in (yield NAMED_ROLES(application=application_id, keys=sorted(named)))}
    if gone := sorted(named - known.keys()):
        raise RoleNotFound(", ".join(gone))
    for step in steps:
        _refuse_protected_below(step, known)
    fresh = {role for step in steps for role in _holding(step.after, now) - _holding(step.before, now)}
    return {role: known[role].user_limit for role in fresh if known[role].user_limit}


def _refuse_protected_below(step: Step, known: Mapping[str, Row]) -> None:
    """Whoever edits has looked already; a role that is protected all the same became so meanwhile."""
    for scope, role in _assigned(step.after) - _assigned(step.before):
        if not scope.is_root and known[role].protected:
            raise VersionConflict(f"{role} is protected now")


def refuse_owning_service(step: Step) -> Verb[None]:
    """A service account never owns a project, whoever gives it the role (R1)."""
    given = _assigned(step.after) - _assigned(step.before) if step.after.application_id == CENTRAL_ID else set()
    if any(role == OWNER for _, role in given) and (yield IS_SERVICE(of=step.after.user_id)):
        raise OwnerIsNoPerson(f"service account {step.after.user_id}")


def hold_administrators(steps: Sequence[Step], now: int) -> Verb[bool]:
    """Whether somebody is about to administer everything no more, one day at least."""
    lost = any(_administers(one.before, now) - _administers(one.after, now) for one in steps)
    if lost:
        yield HOLD_ADMINISTRATORS()
    return lost


def refuse_nobody() -> Verb[None]:
    """Raise NobodyAdministers when nobody is left who administers without end."""
    if all(_is_denied(row.private_data) for row in (yield ADMINISTRATORS_THAT_STAY())):
        raise NobodyAdministers


def _administers(one: UserRecord, now: int) -> set[End]:
    """Until when; empty when he does not."""
    if one.application_id != CENTRAL_ID or _is_denied(one.root.private_data):
        return set()
    return {each.end for each in one.root.roles if each.role == ADMINISTRATOR and not each.end.is_past(now)}


def _is_denied(private_data: Tree) -> bool:
    """A direct entry wins over the role; one that ends one day is taken as if it did not."""
    entry = private_data.get("can_administer")
    return isinstance(entry, Mapping) and entry.get("value") is not True


def refuse_full(application_id: int, steps: Sequence[Step], limits: Mapping[str, int], now: int) -> Verb[None]:
    if not limits:
        return
    for row in (yield HOLDERS_OF(application=application_id, keys=sorted(limits), now=now)):
        role, limit = row.role_key, limits[row.role_key]
        if row.holders > limit:
            new = [one.after.user_id for one in steps if role in _holding(one.after, now) - _holding(one.before, now)]
            whom = ", ".join(f"user {user_id}" for user_id in new)
            raise RoleFull(
                f"application {application_id}: user_limit of the role {role} is {limit}, no seat for {whom}"
            )


def role_holders(application_id: int, now: int) -> Verb[Mapping[str, int]]:
    rows = yield HOLDERS(application=application_id, now=now)
    return {row.role_key: row.holders for row in rows}


def holders_of(application_id: int, keys: Collection[str], now: int) -> Verb[Mapping[str, int]]:
    rows = yield HOLDERS_OF(application=application_id, keys=sorted(keys), now=now)
    return {row.role_key: row.holders for row in rows}


def _assigned(one: UserRecord) -> set[tuple[Scope, str]]:
    return {(scope, assignment.role) for scope, held in one.scopes.items() for assignment in held.roles}


def _holding(one: UserRecord, now: int) -> set[str]:
    return {
        assignment.role
        for held in one.scopes.values()
        for assignment in held.roles
        if not assignment.end.is_past(now)
    }


def owned_by(one: UserRecord, now: int) -> set[tuple[str, End]]:
    """Projects and until when."""
    if one.application_id != CENTRAL_ID:
        return set()
    return {
        (scope.project_id, assignment.end)
        for scope, held in one.scopes.items()
        if not scope.is_root and scope == scope.project
        for assignment in held.roles
        if assignment.role == OWNER and not assignment.end.is_past(now)
    }
