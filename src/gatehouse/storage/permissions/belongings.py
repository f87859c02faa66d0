"""What an account that ends leaves behind in projects."""

from sqlalchemy import bindparam, delete, select

from gatehouse.storage.permissions.clock import change_structure
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables import group_members

LISTED = Statement(select(group_members.c.group_id).where(group_members.c.user_id == bindparam("of")).limit(1))
DROP_MEMBERSHIPS = Statement(delete(group_members).where(group_members.c.user_id == bindparam("of")))


def drop_memberships(user_id: str) -> Verb[None]:
    """Part of verbs that end an account."""
    if (yield LISTED(of=user_id)):
        yield from change_structure()
        yield DROP_MEMBERSHIPS(of=user_id)
