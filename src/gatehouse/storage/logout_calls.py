"""Ends what clients were granted when a session or an account ends, and keeps whom to tell of it (oauth/store.py)."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Text, and_, bindparam, delete, insert, not_, select, type_coerce, update

from gatehouse.audit.model import Record
from gatehouse.kernel.ids import new_record_id
from gatehouse.oauth.model import LogoutCall
from gatehouse.storage.audit import record
from gatehouse.storage.runner import Stored, act, survey
from gatehouse.storage.statements import AnyOf, Notice, Row, Statement, Verb
from gatehouse.storage.tables.oauth import clients, grants, logout_calls

CHANNEL: Final = "logout"

# Also those that have ended by themselves: a client's own session goes on when its access token is over.
_OF_SESSION = and_(
    grants.c.user_id == bindparam("of"), grants.c.session_id == bindparam("session"), grants.c.revoked_at == 0
)
_IS_OFFLINE = type_coerce(grants.c.scopes, Text).like('%"offline_access"%')

OF_SESSION = Statement(select(grants.c.client_id, grants.c.session_id).where(_OF_SESSION).distinct())
END_OF_SESSION = Statement(update(grants).where(_OF_SESSION, not_(_IS_OFFLINE)).values(revoked_at=bindparam("now")))
# Revoking is what tells: of whoever ends an account's grants at once, one finds a grant still there.
END_OF_USER = Statement(
    update(grants)
    .where(grants.c.user_id == bindparam("of"), grants.c.revoked_at == 0)
    .values(revoked_at=bindparam("now"))
    .returning(grants.c.client_id, grants.c.session_id)
)
TO_BE_TOLD = Statement(
    select(clients.c.client_id, clients.c.backchannel_logout_uri).where(
        AnyOf(clients.c.client_id, "named"), clients.c.backchannel_logout_uri != "", clients.c.removed.is_(False)
    )
)
INSERT = Statement(insert(logout_calls))

_TO_BE_TRIED = logout_calls.c.next_try_at > 0
_HELD = and_(logout_calls.c.call_id == bindparam("of"), logout_calls.c.tries == bindparam("held"))
# The inner select locks what it finds and steps over what another node has locked; SQLite has one writer.
_DUE = (
    select(logout_calls.c.call_id)
    .where(_TO_BE_TRIED, logout_calls.c.next_try_at <= bindparam("now"))
    # First tries first: clients that are not there never hold up those that are.
    .order_by(logout_calls.c.tries, logout_calls.c.next_try_at, logout_calls.c.call_id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("due")
)
CLAIM = Statement(
    update(logout_calls)
    .where(logout_calls.c.call_id.in_(select(_DUE.c.call_id)))
    .values(next_try_at=bindparam("until"), tries=logout_calls.c.tries + 1)
    .returning(*logout_calls.c)
)
DELIVERED = Statement(delete(logout_calls).where(_HELD).returning(logout_calls.c.call_id))
PUT_OFF = Statement(
    update(logout_calls).where(_HELD).values(next_try_at=bindparam("again"), trouble=bindparam("why"))
)
ALL = Statement(select(logout_calls).order_by(logout_calls.c.created_at, logout_calls.c.call_id))
FORGET = Statement(delete(logout_calls).where(logout_calls.c.created_at <= bindparam("before")))


def end_session_grants(user_id: str, session_id: str, now: int) -> Verb[None]:
    """Part of every verb that ends one session: offline access outlives it, and its clients are told as well."""
    rows = yield OF_SESSION(of=user_id, session=session_id)
    if rows:
        yield END_OF_SESSION(of=user_id, session=session_id, now=now)
        yield from _tell(rows, user_id, now)


def end_user_grants(user_id: str, now: int) -> Verb[None]:
    """Part of every verb that ends everything an account has signed in to."""
    rows = yield END_OF_USER(of=user_id, now=now)
    if rows:
        yield from _tell(rows, user_id, now)


def _tell(rows: Iterable[Row], user_id: str, now: int) -> Verb[None]:
    ended = sorted({(row.client_id, row.session_id) for row in rows})
    wanting = yield TO_BE_TOLD(named=sorted({client_id for client_id, _ in ended}))
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
        yield INSERT.many(calls)
        yield Notice(CHANNEL, "")


def claim(now: int, *, most: int, lease: int) -> Verb[Sequence[LogoutCall]]:
    return [LogoutCall(**row._asdict()) for row in (yield CLAIM(now=now, most=most, until=now + lease))]


def delivered(call: LogoutCall, entry: Record) -> Verb[None]:
    if (yield DELIVERED(of=call.call_id, held=call.tries)):
        yield from record(entry)


def put_off(call: LogoutCall, trouble: str, next_try_at: int) -> Verb[None]:
    yield PUT_OFF(of=call.call_id, held=call.tries, again=next_try_at, why=trouble)


def give_up(call: LogoutCall, trouble: str, entry: Record) -> Verb[None]:
    yield PUT_OFF(of=call.call_id, held=call.tries, again=0, why=trouble)
    yield from record(entry)


def all_calls() -> Verb[Sequence[LogoutCall]]:
    return [LogoutCall(**row._asdict()) for row in (yield ALL())]


def forget_before(before: int) -> Verb[None]:
    """Part of sweeping: a call that was given up is kept for a while, for the operator to see."""
    yield FORGET(before=before)


class LogoutStorage(Stored):
    claim = act(claim)
    delivered = act(delivered)
    put_off = act(put_off)
    give_up = act(give_up)
    all_calls = survey(all_calls)
