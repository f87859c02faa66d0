"""PostgreSQL's twin of beginning a grant: one statement, one round trip (docs/decisions/0003-verbs-written-once.md).

Whether person, session and consent are still there, the grant, and its audit record. Whatever is asked about is held
against a revocation under way until the statement has committed, as in the verb it stands for.
"""

from itertools import product
from typing import Final

from sqlalchemy import CTE, bindparam, cast, select
from sqlalchemy.dialects.postgresql import JSONB

from gatehouse.audit.model import AuditRecord
from gatehouse.oauth.model import Grant
from gatehouse.storage.row_if import audit_record_parameters, insert_audit_record_if, insert_if
from gatehouse.storage.rows import column_values
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import sessions, users
from gatehouse.storage.tables.oauth import consents, grants


def _lock_unrevoked(*, in_session: bool, consented: bool) -> CTE:
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


def _create_statement(*, in_session: bool, consented: bool) -> Statement:
    held = _lock_unrevoked(in_session=in_session, consented=consented)
    return Statement(insert_audit_record_if(insert_if(held, grants).cte("made")))


CREATE_SINGLE_STATEMENT: Final = {
    (in_session, consented): _create_statement(in_session=in_session, consented=consented)
    for in_session, consented in product((False, True), repeat=2)
}


def create_grant_single_statement(
    grant: Grant, entry: AuditRecord, *, in_session: bool = False, consented: bool = False
) -> Verb[bool]:
    return bool(
        (
            yield CREATE_SINGLE_STATEMENT[in_session, consented](
                **column_values(grant), **audit_record_parameters(entry)
            )
        )
    )
