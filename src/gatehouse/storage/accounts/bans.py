"""Storage of bans (accounts/bans/store.py).

`users.bans` repeats the active ones, so that every reader of an account has them without another query. Both change
in one transaction that holds the account's row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, bindparam, delete, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.accounts.bans.model import (
    INSTALLATION,
    MAX_ACTIVE_BANS,
    Ban,
    BanChanged,
    BanNotFound,
    BanScope,
    BanState,
    TooManyBans,
    UserBan,
)
from gatehouse.accounts.bans.store import BanFilter, MakeBan
from gatehouse.accounts.errors import UserNotFound
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.times import DAY
from gatehouse.storage import gamesessions
from gatehouse.storage.accounts.users import refuse_last_administrator
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.permissions.row_readers import IS_ACTIVE
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import SqlStore, inline_write, read, snapshot_read, write
from gatehouse.storage.statements import Notification, Row, Statement, Verb
from gatehouse.storage.tables.accounts import ban_devices, bans, user_devices, users
from gatehouse.storage.tables.gamesessions import game_sessions

MAX_DEVICES: Final = 100  # of one person that a ban covers
MAX_DEVICE_ACCOUNTS: Final = 1_000  # that are looked at before a ban of devices
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
HOLD_USER = Statement(
    select(users.c.user_id)
    .where(users.c.user_id == bindparam("of"))
    .with_for_update(read=True)  # a concurrent erasure waits, and then deletes the device too
)
_NEW_DEVICE = upsert(user_devices)
RECORD_DEVICE = Statement(
    _NEW_DEVICE.on_conflict_do_update(
        index_elements=["user_id", "device"], set_={"seen_at": _NEW_DEVICE.excluded.seen_at}
    )
)
LAST_USE = Statement(
    select(user_devices.c.seen_at).where(
        user_devices.c.user_id == bindparam("of"), user_devices.c.device == bindparam("on")
    )
)
_PERSONS_DEVICES = user_devices.c.user_id == bindparam("of")
_SURPLUS_DEVICES = (
    select(user_devices.c.device)
    .where(_PERSONS_DEVICES)
    .order_by(user_devices.c.seen_at.desc(), user_devices.c.device)
    .offset(MAX_DEVICES)
)
DROP_SURPLUS_DEVICES = Statement(
    delete(user_devices).where(_PERSONS_DEVICES, user_devices.c.device.in_(_SURPLUS_DEVICES))
)
BANS_OF_DEVICE = Statement(
    select(*(bans.c[name] for name in COPIED))
    .join(ban_devices, ban_devices.c.ban_id == bans.c.ban_id)
    .where(ban_devices.c.device == bindparam("on"), IS_ACTIVE)
    .limit(MAX_ACTIVE_BANS)
)
_OWN_DEVICES = select(user_devices.c.device).where(
    user_devices.c.user_id == bindparam("of"), user_devices.c.seen_at >= bindparam("since")
)
# The newest first: made-up factors of earlier sign-ins do not displace the device that is used.
DEVICES_OF_USER = Statement(_OWN_DEVICES.order_by(user_devices.c.seen_at.desc()).limit(MAX_DEVICES))
ACCOUNTS_ON_DEVICES = Statement(
    select(user_devices.c.device, user_devices.c.user_id)
    .where(user_devices.c.device.in_(_OWN_DEVICES), user_devices.c.seen_at >= bindparam("since"))
    .limit(MAX_DEVICE_ACCOUNTS)
)
INSERT_BAN_DEVICE = Statement(insert(ban_devices))
_OLD_BAN: Final = ban_devices.c.ban_id == bindparam("old")
MOVE_BAN_DEVICES = Statement(update(ban_devices).where(_OLD_BAN).values(ban_id=bindparam("to")))
DROP_BAN_DEVICES = Statement(delete(ban_devices).where(_OLD_BAN))
_INACTIVE_BANS = select(bans.c.ban_id).where(
    or_(bans.c.lifted_at != 0, and_(bans.c.until != 0, bans.c.until <= bindparam("now")))
)
DROP_DEVICES_OF_INACTIVE_BANS = Statement(delete(ban_devices).where(ban_devices.c.ban_id.in_(_INACTIVE_BANS)))


def save_ban(
    user_id: str, scope: BanScope, make: MakeBan, *, by: str, now: int, devices_since: int | None = None
) -> Verb[Ban]:
    if scope == INSTALLATION:
        yield from refuse_last_administrator(user_id, now)
    if not (yield LOCK_ACCOUNT(of=user_id)):
        raise UserNotFound
    replaced = yield LIFT(**_place(user_id, scope), now=now, by=by)
    ban, record = make(_ban_from_row(replaced[0]) if replaced else None)
    if devices_since is None:
        yield from _move_devices(replaced, ban)
    else:
        devices = yield DEVICES_OF_USER(of=user_id, since=devices_since)
        yield INSERT_BAN_DEVICE.bulk([{"ban_id": ban.ban_id, "device": row.device} for row in devices])
        ban = replace(ban, devices=len(devices))
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
    yield DROP_BAN_DEVICES(old=ban.ban_id)
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
        yield from _move_devices(lifted, after)
        yield INSERT_BAN(**{**column_values(after), "author": by})
    else:
        yield DROP_BAN_DEVICES(old=ban.ban_id)
    yield from copy_active_bans(ban.user_id, now)


def _move_devices(replaced: Sequence[Row], ban: Ban) -> Verb[None]:
    """Give the devices of the replaced ban to the new one; they are dropped if it has none."""
    for row in replaced:
        if ban.devices:
            yield MOVE_BAN_DEVICES(old=row.ban_id, to=ban.ban_id)
        else:
            yield DROP_BAN_DEVICES(old=row.ban_id)


# Devices at sign-ins.


def record_device(user_id: str, device: str, now: int) -> Verb[None]:
    if not (yield HOLD_USER(of=user_id)):
        return  # erased meanwhile: nothing about the person is stored
    yield RECORD_DEVICE(user_id=user_id, device=device, seen_at=now)
    yield DROP_SURPLUS_DEVICES(of=user_id)


def last_device_use(user_id: str, device: str) -> Verb[int]:
    rows = yield LAST_USE(of=user_id, on=device)
    return rows[0].seen_at if rows else 0


def bans_of_device(device: str, now: int) -> Verb[tuple[UserBan, ...]]:
    rows = yield BANS_OF_DEVICE(on=device, now=now)
    return tuple(map(user_ban_from_row, rows))


def user_ban_from_row(row: Row) -> UserBan:
    return UserBan(**row._asdict())


def accounts_on_devices(user_id: str, since: int) -> Verb[Sequence[frozenset[str]]]:
    found: dict[str, set[str]] = {}
    for row in (yield ACCOUNTS_ON_DEVICES(of=user_id, since=since)):
        found.setdefault(row.device, set()).add(row.user_id)
    return [frozenset(accounts) for accounts in found.values()]


def drop_devices_of_dead_bans(now: int) -> Verb[None]:
    yield DROP_DEVICES_OF_INACTIVE_BANS(now=now)


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
    bans_of_device = read(bans_of_device)
    accounts_on_devices = read(accounts_on_devices)
    _record_device = inline_write(record_device)
    _last_device_use = read(last_device_use)

    async def record_device(self, user_id: str, device: str, now: int) -> None:
        if await self._last_device_use(user_id, device) + DAY <= now:
            await self._record_device(user_id, device, now)

    list_bans = snapshot_read(list_bans)
