"""Ends grants when a session or an account ends, and stores which clients to call (oauth/store.py)."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Text, and_, bindparam, delete, insert, not_, select, type_coerce, update

from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.ids import new_record_id
from gatehouse.oauth.model import LogoutCall
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.runner import SqlStore, snapshot_read, write
from gatehouse.storage.statements import InStringList, Notification, Row, Statement, Verb
from gatehouse.storage.tables.oauth import clients, grants, logout_calls

CHANNEL: Final = "logout"

# Expired grants too: a client's own session continues when its access token has expired.
_GRANTS_OF_SESSION = and_(
    grants.c.user_id == bindparam("of"), grants.c.session_id == bindparam("session"), grants.c.revoked_at == 0
)
_IS_OFFLINE = type_coerce(grants.c.scopes, Text).like('%"offline_access"%')

CLIENTS_OF_SESSION = Statement(
    lambda: select(grants.c.client_id, grants.c.session_id).where(_GRANTS_OF_SESSION).distinct()
)
REVOKE_SESSION_GRANTS = Statement(
    lambda: update(grants).where(_GRANTS_OF_SESSION, not_(_IS_OFFLINE)).values(revoked_at=bindparam("now"))
)
# The revocation decides: of two transactions that end an account's grants, one finds each grant live.
REVOKE_USER_GRANTS = Statement(
    lambda: (
        update(grants)
        .where(grants.c.user_id == bindparam("of"), grants.c.revoked_at == 0)
        .values(revoked_at=bindparam("now"))
        .returning(grants.c.client_id, grants.c.session_id)
    )
)
LOGOUT_URIS = Statement(
    lambda: select(clients.c.client_id, clients.c.backchannel_logout_uri).where(
        InStringList(clients.c.client_id, "named"),
        clients.c.backchannel_logout_uri != "",
        clients.c.removed.is_(False),
    )
)
INSERT_CALL = Statement(lambda: insert(logout_calls))

_IS_WAITING = logout_calls.c.next_try_at > 0
_LEASED_BY_US = and_(logout_calls.c.call_id == bindparam("of"), logout_calls.c.tries == bindparam("held"))
# The inner select locks the rows it finds and skips those another node has locked; SQLite has one writer.
_DUE = (
    select(logout_calls.c.call_id)
    .where(_IS_WAITING, logout_calls.c.next_try_at <= bindparam("now"))
    # Calls that were not tried yet come first: unreachable clients never delay the others.
    .order_by(logout_calls.c.tries, logout_calls.c.next_try_at, logout_calls.c.call_id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("due")
)
CLAIM_CALLS = Statement(
    lambda: (
        update(logout_calls)
        .where(logout_calls.c.call_id.in_(select(_DUE.c.call_id)))
        .values(next_try_at=bindparam("until"), tries=logout_calls.c.tries + 1)
        .returning(*logout_calls.c)
    )
)
DROP_DELIVERED = Statement(lambda: delete(logout_calls).where(_LEASED_BY_US).returning(logout_calls.c.call_id))
SCHEDULE_RETRY = Statement(
    lambda: update(logout_calls).where(_LEASED_BY_US).values(next_try_at=bindparam("again"), trouble=bindparam("why"))
)
ALL_CALLS = Statement(lambda: select(logout_calls).order_by(logout_calls.c.created_at, logout_calls.c.call_id))
DROP_OLD_CALLS = Statement(lambda: delete(logout_calls).where(logout_calls.c.created_at <= bindparam("before")))


def revoke_session_grants(user_id: str, session_id: str, now: int) -> Verb[None]:
    """Revoke the grants of one session and queue the calls to its clients; offline access stays.

    Part of every verb that ends one session.
    """
    rows = yield CLIENTS_OF_SESSION(of=user_id, session=session_id)
    if rows:
        yield REVOKE_SESSION_GRANTS(of=user_id, session=session_id, now=now)
        yield from _enqueue_calls(rows, user_id, now)


def revoke_user_grants(user_id: str, now: int) -> Verb[None]:
    """Revoke all grants of an account; part of every verb that ends all its sign-ins."""
    rows = yield REVOKE_USER_GRANTS(of=user_id, now=now)
    if rows:
        yield from _enqueue_calls(rows, user_id, now)


def _enqueue_calls(rows: Iterable[Row], user_id: str, now: int) -> Verb[None]:
    ended = sorted({(row.client_id, row.session_id) for row in rows})
    wanting = yield LOGOUT_URIS(named=sorted({client_id for client_id, _ in ended}))
    addresses = {row.client_id: row.backchannel_logout_uri for row in wanting}
    calls = [
        {
            "call_id": new_record_id(now),
            "client_id": client_id,
            "uri": addresses[client_id],
            "user_id": user_id,
            "session_id": session_id,
            "created_at": now,
            "tries": 0,
            "next_try_at": now,
            "trouble": "",
        }
        for client_id, session_id in ended
        if client_id in addresses
    ]
    if calls:
        yield INSERT_CALL.bulk(calls)
        yield Notification(CHANNEL, "")


def claim_calls(now: int, *, most: int, lease: int) -> Verb[Sequence[LogoutCall]]:
    return [LogoutCall(**row._asdict()) for row in (yield CLAIM_CALLS(now=now, most=most, until=now + lease))]


def mark_delivered(call: LogoutCall, entry: AuditRecord) -> Verb[None]:
    if (yield DROP_DELIVERED(of=call.call_id, held=call.tries)):
        yield from add_audit_record(entry)


def schedule_retry(call: LogoutCall, trouble: str, next_try_at: int) -> Verb[None]:
    yield SCHEDULE_RETRY(of=call.call_id, held=call.tries, again=next_try_at, why=trouble)


def give_up_call(call: LogoutCall, trouble: str, entry: AuditRecord) -> Verb[None]:
    yield SCHEDULE_RETRY(of=call.call_id, held=call.tries, again=0, why=trouble)
    yield from add_audit_record(entry)


def all_calls() -> Verb[Sequence[LogoutCall]]:
    return [LogoutCall(**row._asdict()) for row in (yield ALL_CALLS())]


def delete_calls_before(before: int) -> Verb[None]:
    """Delete old calls; part of sweeping. A failed call is kept for a while, for the operator to see."""
    yield DROP_OLD_CALLS(before=before)


class LogoutStorage(SqlStore):
    claim_calls = write(claim_calls)
    mark_delivered = write(mark_delivered)
    schedule_retry = write(schedule_retry)
    give_up_call = write(give_up_call)
    all_calls = snapshot_read(all_calls)
