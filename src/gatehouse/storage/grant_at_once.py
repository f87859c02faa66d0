"""PostgreSQL's twin of beginning a grant: one statement, one round trip (docs/decisions/0003-verbs-written-once.md).

Whether person, session and consent are still there, the grant, and its audit record. Whatever is asked about is held
against a revocation under way until the statement has committed, as in the verb it stands for.
"""

from itertools import product
from typing import Any, Final

from sqlalchemy import CTE, Insert, Table, bindparam, cast, insert, select
from sqlalchemy.dialects.postgresql import JSONB

from gatehouse.audit.model import Record
from gatehouse.oauth.model import Grant
from gatehouse.storage.rows import columns_of
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import sessions, users
from gatehouse.storage.tables.audit import audit_events
from gatehouse.storage.tables.oauth import consents, grants

ENTRY: Final = "entry_"  # before the names of the record's columns


def _still_good(*, in_session: bool, consented: bool) -> CTE:
    held = select(users.c.user_id).where(
        users.c.user_id == bindparam("user_id"), users.c.rev == bindparam("rev"), users.c.blocked.is_(False)
    )
    if in_session:
        held = held.where(sessions.c.session_id == bindparam("session_id"))
    if consented:
        held = held.where(
            consents.c.user_id == bindparam("user_id"),
            consents.c.client_id == bindparam("client_id"),
            cast(consents.c.scopes, JSONB).contains(cast(bindparam("scopes", type_=grants.c.scopes.type), JSONB)),
        )
    return held.with_for_update(read=True).cte("held")


def _row_if(table: Table, there: CTE, prefix: str = "") -> Insert:
    """The parameters as a row of the table, if there is a row over there."""
    values: list[Any] = [bindparam(f"{prefix}{column.name}", type_=column.type) for column in table.c]
    return insert(table).from_select(list(table.c), select(*values).select_from(there), include_defaults=False)


def _begin(*, in_session: bool, consented: bool) -> Statement:
    held = _still_good(in_session=in_session, consented=consented)
    made = _row_if(grants, held).returning(grants.c.grant_id).cte("made")
    return Statement(_row_if(audit_events, made, ENTRY).returning(audit_events.c.record_id))


BEGIN: Final = {
    (in_session, consented): _begin(in_session=in_session, consented=consented)
    for in_session, consented in product((False, True), repeat=2)
}


def begin_at_once(grant: Grant, entry: Record, *, in_session: bool = False, consented: bool = False) -> Verb[bool]:
    recorded = {f"{ENTRY}{name}": value for name, value in columns_of(entry).items()}
    return bool((yield BEGIN[in_session, consented](**columns_of(grant), **recorded)))
