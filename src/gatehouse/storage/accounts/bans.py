"""Storage of bans (accounts/bans/store.py).

`users.bans` repeats the active ones, so that every reader of an account has them without another query. Both change
in one transaction that holds the account's row.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, bindparam, insert, select, update

from gatehouse.accounts.bans.model import (
    INSTALLATION,
    MAX_ACTIVE_BANS,
    Ban,
    BanChanged,
    BanNotFound,
    BanScope,
    BanState,
    TooManyBans,
)
from gatehouse.accounts.bans.store import BanFilter, MakeBan
from gatehouse.accounts.errors import UserNotFound
from gatehouse.audit.model import AuditRecord
from gatehouse.storage import gamesessions
from gatehouse.storage.accounts.users import refuse_last_administrator
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.permissions.row_readers import IS_ACTIVE
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import SqlStore, snapshot_read, write
from gatehouse.storage.statements import Notification, Row, Statement, Verb
from gatehouse.storage.tables.accounts import bans, users
from gatehouse.storage.tables.gamesessions import game_sessions

COPIED: Final = ("ban_id", "application_id", "project_id", "public_text", "until")  # to `users.bans`

_OF_PERSON: Final = bans.c.user_id == bindparam("of")
_SAME_SCOPE: Final = and_(
    bans.c.application_id == bindparam("at_application"), bans.c.project_id == bindparam("at_project")
)
LOCK_ACCOUNT = Statement(select(users.c.user_id).where(users.c.user_id == bindparam("of")).with_for_update())
INSERT_BAN = Statement(insert(bans))
LIFT = Statement(
    update(bans)
    .where(_OF_PERSON, _SAME_SCOPE, IS_ACTIVE)
    .values(lifted_at=bindparam("now"), lifted_by=bindparam("by"))
    .returning(*bans.c)
)
ACTIVE_BANS = Statement(
    select(*(bans.c[name] for name in COPIED)).where(_OF_PERSON, IS_ACTIVE).order_by(bans.c.ban_id)
)
ALL_ACTIVE_BANS = Statement(
    select(bans).where(IS_ACTIVE).order_by(bans.c.user_id, bans.c.application_id, bans.c.project_id)
)
COPY_TO_ACCOUNT = Statement(
    update(users).where(users.c.user_id == bindparam("of")).values(bans=bindparam("active", type_=users.c.bans.type))
)
LIVE_GAME_SESSIONS = Statement(
    select(game_sessions.c.gsid).where(
        game_sessions.c.user_id == bindparam("of"), game_sessions.c.ends_at > bindparam("now")
    )
)


def save_ban(user_id: str, scope: BanScope, make: MakeBan, *, by: str, now: int) -> Verb[Ban]:
    if scope == INSTALLATION:
        yield from refuse_last_administrator(user_id, now)
    if not (yield LOCK_ACCOUNT(of=user_id)):
        raise UserNotFound
    replaced = yield LIFT(**_place(user_id, scope), now=now, by=by)
    ban, record = make(_ban_from_row(replaced[0]) if replaced else None)
    yield INSERT_BAN(**column_values(ban))
    yield from copy_active_bans(user_id, now)
    yield from add_audit_record(record)
    return ban


def lift_ban(user_id: str, scope: BanScope, *, by: str, now: int, record: Callable[[Ban], AuditRecord]) -> Verb[Ban]:
    yield LOCK_ACCOUNT(of=user_id)
    lifted = yield LIFT(**_place(user_id, scope), now=now, by=by)
    if not lifted:
        raise BanNotFound
    ban = _ban_from_row(lifted[0])
    yield from copy_active_bans(user_id, now)
    yield from add_audit_record(record(ban))
    return ban


# For configuration files, which store their records themselves.


def active_bans(now: int) -> Verb[Sequence[Ban]]:
    rows = yield ALL_ACTIVE_BANS(now=now)
    return [_ban_from_row(row) for row in rows]


def put_ban(before: Ban | None, after: Ban | None, *, by: str, now: int) -> Verb[None]:
    """Replace a ban; without `after` it is lifted.

    Raises BanChanged unless `before` is the active ban of its scope.
    """
    ban = after or before
    if ban is None:
        return
    if not (yield LOCK_ACCOUNT(of=ban.user_id)):
        raise UserNotFound
    lifted = yield LIFT(**_place(ban.user_id, ban.scope), now=now, by=by)
    if [row.ban_id for row in lifted] != ([] if before is None else [before.ban_id]):
        raise BanChanged
    if after is not None:
        yield INSERT_BAN(**{**column_values(after), "author": by})
    yield from copy_active_bans(ban.user_id, now)


def _place(user_id: str, scope: BanScope) -> Mapping[str, object]:
    return {"of": user_id, "at_application": scope.application_id, "at_project": scope.project_id}


def copy_active_bans(user_id: str, now: int) -> Verb[None]:
    """Copy the active bans to the account and wake what waits for its game sessions; the caller holds its row."""
    active = yield ACTIVE_BANS(of=user_id, now=now)
    if len(active) > MAX_ACTIVE_BANS:
        raise TooManyBans
    yield COPY_TO_ACCOUNT(of=user_id, active=[row._asdict() for row in active])
    for session in (yield LIVE_GAME_SESSIONS(of=user_id, now=now)):
        yield Notification(gamesessions.CHANNEL, session.gsid)


# Lists: a statement for each set of filters, so that each uses its index.


_STATES: Final[Mapping[BanState, ColumnElement[bool]]] = {
    BanState.ACTIVE: IS_ACTIVE,
    BanState.ENDED: and_(bans.c.lifted_at == 0, bans.c.until != 0, bans.c.until <= bindparam("now")),
    BanState.LIFTED: bans.c.lifted_at != 0,
}


@cache
def _list_statement(*, of_person: bool, in_scope: bool, state: BanState | None, further: bool) -> Statement:
    conditions = [
        *([_OF_PERSON] if of_person else []),
        *([_SAME_SCOPE] if in_scope else []),
        *([] if state is None else [_STATES[state]]),
        *([bans.c.ban_id < bindparam("before")] if further else []),
    ]
    return Statement(select(bans).where(*conditions).order_by(bans.c.ban_id.desc()).limit(bindparam("most")))


def list_bans(wanted: BanFilter, now: int, limit: int) -> Verb[Sequence[Ban]]:
    statement = _list_statement(
        of_person=bool(wanted.user_id),
        in_scope=wanted.scope is not None,
        state=wanted.state,
        further=bool(wanted.before),
    )
    given: dict[str, Any] = {"most": limit}
    if wanted.user_id:
        given["of"] = wanted.user_id
    if wanted.scope is not None:
        given |= {"at_application": wanted.scope.application_id, "at_project": wanted.scope.project_id}
    if wanted.state in (BanState.ACTIVE, BanState.ENDED):
        given["now"] = now
    if wanted.before:
        given["before"] = wanted.before
    rows = yield statement(**given)
    return [_ban_from_row(row) for row in rows]


def _ban_from_row(row: Row) -> Ban:
    return Ban(**row._asdict())


class BanStorage(SqlStore):
    save_ban = write(save_ban)
    lift_ban = write(lift_ban)
    list_bans = snapshot_read(list_bans)
