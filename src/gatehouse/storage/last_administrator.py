"""Somebody administers, always: whoever takes an administrator away finds another one, or leaves him."""

from sqlalchemy import select

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.accounts.own.errors import LastAdministrator
from gatehouse.storage.permissions.held import ACCOUNT_NOT_ENDED, UNEXPIRED
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.user_records import role_assignments

_ADMINISTRATORS = (
    select(role_assignments.c.user_id)
    .join(users, users.c.user_id == role_assignments.c.user_id)
    .where(
        role_assignments.c.application_id == CENTRAL_APPLICATION,
        role_assignments.c.project_id == "",
        role_assignments.c.resource_kind == "",
        role_assignments.c.role_key == ADMINISTRATOR_ROLE,
        UNEXPIRED,
        ACCOUNT_NOT_ENDED,
        users.c.blocked.is_(False),
    )
    .order_by(role_assignments.c.user_id)
)
# Locked until the commit, in one order: of the last two administrators who go at once, one finds himself alone.
LOCK_ADMINISTRATORS = Statement(_ADMINISTRATORS.with_for_update(of=role_assignments))
REMAINING_ADMINISTRATORS = Statement(_ADMINISTRATORS)


def refuse_last_administrator(user_id: str, now: int) -> Verb[None]:
    """First in every verb that blocks or ends an account. Raises LastAdministrator."""
    held = {row.user_id for row in (yield LOCK_ADMINISTRATORS(now=now))}
    if user_id not in held:
        return
    # Read again: who was blocked while we waited holds the role still.
    if {row.user_id for row in (yield REMAINING_ADMINISTRATORS(now=now))} <= {user_id}:
        raise LastAdministrator
