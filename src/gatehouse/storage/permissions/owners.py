"""A project that has an owner keeps one (R5)."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from sqlalchemy import and_, bindparam, or_, select

from gatehouse.permissions.errors import LastOwner
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.storage.permissions.held import UNEXPIRED
from gatehouse.storage.statements import InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.applications import roles
from gatehouse.storage.tables.projects import projects
from gatehouse.storage.tables.user_records import role_assignments

OWNER_ROLE: Final = "project_owner"

IS_OWNER = and_(
    role_assignments.c.application_id == CENTRAL_ID,
    role_assignments.c.role_key == OWNER_ROLE,
    role_assignments.c.project_id != "",
    role_assignments.c.resource_kind == "",
)
_OWNERS = (
    select(role_assignments.c.project_id, role_assignments.c.user_id)
    .join(projects, projects.c.project_id == role_assignments.c.project_id)
    .where(IS_OWNER, UNEXPIRED, projects.c.removed.is_(False))
)
# Only who owns without end is one the project can rely on: nobody foresees what happens the day he ends (R5).
IS_PERMANENT = or_(role_assignments.c.ttl != 0, role_assignments.c.expired == 0)
OWNED_PROJECTS = Statement(_OWNERS.where(role_assignments.c.user_id == bindparam("user_id")))
_UNBLOCKED_OWNERS = _OWNERS.join(users, users.c.user_id == role_assignments.c.user_id).where(
    InStringList(role_assignments.c.project_id, "projects"), users.c.blocked.is_(False)
)
OWNERS = Statement(_UNBLOCKED_OWNERS)
PERMANENT_OWNERS = Statement(_UNBLOCKED_OWNERS.where(IS_PERMANENT))
# Whoever may take an owner from a project holds this row: two who take the last two do not pass each other.
LOCK_OWNER_ROLE = Statement(
    select(roles.c.role_key)
    .where(roles.c.application_id == CENTRAL_ID, roles.c.role_key == OWNER_ROLE)
    .with_for_update()
)


def owners_of(project_ids: Collection[str], now: int) -> Verb[Mapping[str, frozenset[str]]]:
    """Unblocked users who own these live projects now."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in (yield OWNERS(projects=sorted(project_ids), now=now)):
        found[row.project_id].add(row.user_id)
    return {project_id: frozenset(owners) for project_id, owners in found.items()}


def refuse_ownerless(before: Collection[str], now: int) -> Verb[None]:
    """Raise LastOwner if one of these projects, which had owners, has none now who stays one."""
    left = {row.project_id for row in (yield PERMANENT_OWNERS(projects=sorted(before), now=now))}
    if lost := sorted(set(before) - left):
        raise LastOwner(f"the last owner of {', '.join(lost)}")


def refuse_last_owner(user_id: str, now: int) -> Verb[None]:
    """Part of verbs that have taken an account away, and not yet what it held. Raises LastOwner."""
    owned = {row.project_id for row in (yield OWNED_PROJECTS(user_id=user_id, now=now))}
    if owned:
        yield LOCK_OWNER_ROLE()
        yield from refuse_ownerless(owned, now)
