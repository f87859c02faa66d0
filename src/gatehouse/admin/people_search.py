"""Search among people, for administrators and for readers of an application."""

from sqlalchemy import bindparam, select

from gatehouse.storage.runner import SqlStore, read
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.permissions import user_records

NICK_IN_APPLICATION = Statement(
    select(users.c.nick)
    .join(user_records, user_records.c.user_id == users.c.user_id)
    .where(
        user_records.c.application_id == bindparam("application_id"), user_records.c.user_id == bindparam("user_id")
    )
)


def nick_in_application(application_id: int, user_id: str) -> Verb[str | None]:
    """Return the nick of a person with a record in the application."""
    rows = yield NICK_IN_APPLICATION(application_id=application_id, user_id=user_id)
    return rows[0].nick if rows else None


class PeopleSearchStore(SqlStore):
    nick_in_application = read(nick_in_application)
