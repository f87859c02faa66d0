"""Storage of bans (accounts/bans/store.py).

`users.bans` repeats the active ones, so that every reader of an account has them without another query. Both change
in one transaction that holds the account's row.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import ColumnElement, and_, bindparam, delete, exists, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.accounts.bans.model import (
    INSTALLATION,
    MAX_ACTIVE_BANS,
    Ban,
    BanChanged,
    BanNotFound,
    BanRank,
    BanScope,
    BanState,
    DigestKind,
    TooManyBans,
    UserBan,
    digest_end,
)
from gatehouse.accounts.bans.store import BanFilter, MakeBan
from gatehouse.accounts.errors import UserNotFound
from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.times import DAY
from gatehouse.storage import gamesessions
from gatehouse.storage.accounts.ban_aware import BanAwareStore, BanFollower, write_with_bans
from gatehouse.storage.accounts.users import refuse_last_administrator
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.permissions.row_readers import IS_ACTIVE
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import inline_write, read, snapshot_read, write
from gatehouse.storage.statements import InStringList, Notification, Row, Statement, Verb
from gatehouse.storage.tables.accounts import ban_digests, bans, user_devices, users
from gatehouse.storage.tables.gamesessions import game_sessions

MAX_DEVICES: Final = 100  # of one person that a ban covers
MAX_DEVICE_ACCOUNTS: Final = 1_000  # that are looked at before a ban of devices
COPIED: Final = ("ban_id", "application_id", "project_id", "public_text", "until")  # to `users.bans`

_OF_PERSON: Final = bans.c.user_id == bindparam("of")
_SAME_SCOPE: Final = and_(
    bans.c.application_id == bindparam("at_application"), bans.c.project_id == bindparam("at_project")
)
LOCK_ACCOUNT = Statement(lambda: select(users.c.user_id).where(users.c.user_id == bindparam("of")).with_for_update())
INSERT_BAN = Statement(lambda: insert(bans))
_LIFTED: Final[Mapping[str, Any]] = {"lifted_at": bindparam("now"), "lifted_by": bindparam("by")}
LIFT = Statement(lambda: update(bans).where(_OF_PERSON, _SAME_SCOPE, IS_ACTIVE).values(_LIFTED).returning(*bans.c))
# Copies on other accounts of the person (storage/accounts/ban_copies.py).
_COPIES_OF: Final = bans.c.source == bindparam("of_source")
LIFT_COPIES = Statement(lambda: update(bans).where(_COPIES_OF, IS_ACTIVE).values(_LIFTED).returning(*bans.c))
COPIED_TO = Statement(lambda: select(bans.c.user_id).where(_COPIES_OF, IS_ACTIVE).order_by(bans.c.user_id))
CHANGE_COPIES = Statement(
    lambda: (
        update(bans)
        .where(_COPIES_OF, IS_ACTIVE, InStringList(bans.c.user_id, "users"))
        .values(
            {name: bindparam(f"new_{name}") for name in ("reason", "public_text", "until", "author", "author_rank")}
        )
    )
)
SHORTEN_COPIES = Statement(
    lambda: (
        update(bans)
        .where(_COPIES_OF, IS_ACTIVE, or_(bans.c.until == 0, bans.c.until > bindparam("new_until")))
        .values(until=bindparam("new_until"))
        .returning(bans.c.user_id)
    )
)
RENAME_SOURCE = Statement(lambda: update(bans).where(_COPIES_OF).values(source=bindparam("to")))
ACTIVE_BANS = Statement(
    lambda: select(*(bans.c[name] for name in COPIED)).where(_OF_PERSON, IS_ACTIVE).order_by(bans.c.ban_id)
)
ALL_ACTIVE_BANS = Statement(
    lambda: (
        select(bans)
        .where(IS_ACTIVE, bans.c.erased_at == 0)
        .order_by(bans.c.user_id, bans.c.application_id, bans.c.project_id, bans.c.ban_id)
    )
)
COPY_TO_ACCOUNT = Statement(
    lambda: (
        update(users)
        .where(users.c.user_id == bindparam("of"))
        .values(bans=bindparam("active", type_=users.c.bans.type))
    )
)
LIVE_GAME_SESSIONS = Statement(
    lambda: select(game_sessions.c.gsid).where(
        game_sessions.c.user_id == bindparam("of"), game_sessions.c.ends_at > bindparam("now")
    )
)
HOLD_USER = Statement(
    lambda: (
        select(users.c.user_id).where(users.c.user_id == bindparam("of")).with_for_update(read=True)
    )  # a concurrent erasure waits, and then deletes the device too
)
_NEW_DEVICE = upsert(user_devices)
RECORD_DEVICE = Statement(
    lambda: _NEW_DEVICE.on_conflict_do_update(
        index_elements=["user_id", "device"], set_={"seen_at": _NEW_DEVICE.excluded.seen_at}
    )
)
LAST_USE = Statement(
    lambda: select(user_devices.c.seen_at).where(
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
    lambda: delete(user_devices).where(_PERSONS_DEVICES, user_devices.c.device.in_(_SURPLUS_DEVICES))
)
_IS_DEVICE: Final = ban_digests.c.kind == DigestKind.DEVICE.value
BANS_OF_DEVICE = Statement(
    lambda: (
        select(*(bans.c[name] for name in COPIED), bans.c.author_rank)
        .join(ban_digests, ban_digests.c.ban_id == bans.c.ban_id)
        .where(
            _IS_DEVICE,
            ban_digests.c.digest == bindparam("on"),
            or_(ban_digests.c.ends_at == 0, ban_digests.c.ends_at > bindparam("now")),
            IS_ACTIVE,
        )
        .limit(MAX_ACTIVE_BANS)
    )
)
_OWN_DEVICES = select(user_devices.c.device).where(
    user_devices.c.user_id == bindparam("of"), user_devices.c.seen_at >= bindparam("since")
)
# The newest first: made-up factors of earlier sign-ins do not displace the device that is used.
DEVICES_OF_USER = Statement(lambda: _OWN_DEVICES.order_by(user_devices.c.seen_at.desc()).limit(MAX_DEVICES))
ACCOUNTS_ON_DEVICES = Statement(
    lambda: (
        select(user_devices.c.device, user_devices.c.user_id)
        .where(user_devices.c.device.in_(_OWN_DEVICES), user_devices.c.seen_at >= bindparam("since"))
        .limit(MAX_DEVICE_ACCOUNTS)
    )
)
INSERT_DIGEST = Statement(lambda: insert(ban_digests))
_OLD_BAN: Final = ban_digests.c.ban_id == bindparam("old")
MOVE_DEVICES = Statement(lambda: update(ban_digests).where(_OLD_BAN, _IS_DEVICE).values(ban_id=bindparam("to")))
MOVE_OTHER_DIGESTS = Statement(
    lambda: update(ban_digests).where(_OLD_BAN, ~_IS_DEVICE).values(ban_id=bindparam("to"), ends_at=bindparam("ends"))
)
DROP_DIGESTS = Statement(lambda: delete(ban_digests).where(_OLD_BAN))
_INACTIVE: Final = or_(bans.c.lifted_at != 0, and_(bans.c.until != 0, bans.c.until <= bindparam("now")))
DROP_ENDED_DIGESTS = Statement(
    lambda: delete(ban_digests).where(
        or_(
            ban_digests.c.ban_id.in_(select(bans.c.ban_id).where(_INACTIVE)),
            and_(ban_digests.c.ends_at != 0, ban_digests.c.ends_at <= bindparam("now")),
        )
    )
)
_COPIES = bans.alias("copies")
DROP_ENDED_BANS_OF_ERASED = Statement(
    lambda: delete(bans).where(
        bans.c.erased_at != 0,
        or_(
            _INACTIVE,
            ~exists().where(ban_digests.c.ban_id == bans.c.ban_id)
            & ~exists().where(_COPIES.c.source == bans.c.ban_id, _COPIES.c.lifted_at == 0),
        ),
    )
)


def save_ban(
    follower: BanFollower,
    user_id: str,
    scope: BanScope,
    make: MakeBan,
    *,
    by: str,
    now: int,
    devices_since: int | None = None,
) -> Verb[Ban]:
    if scope == INSTALLATION:
        yield from refuse_last_administrator(user_id, now)
    if not (yield LOCK_ACCOUNT(of=user_id)):
        raise UserNotFound
    replaced = yield from _lift(user_id, scope, by, now)
    ban, record = make(replaced[-1] if replaced else None)
    if devices_since is not None:
        devices = yield DEVICES_OF_USER(of=user_id, since=devices_since)
        yield INSERT_DIGEST.bulk(
            [{"ban_id": ban.ban_id, "kind": DigestKind.DEVICE, "digest": row.device, "ends_at": 0} for row in devices]
        )
        ban = replace(ban, devices=len(devices))
    yield from _hand_over(follower, replaced, ban, now, with_devices=devices_since is None)
    yield INSERT_BAN(**column_values(ban))
    yield from copy_active_bans(user_id, now)
    yield from add_audit_record(record)
    return ban


def lift_ban(
    user_id: str,
    scope: BanScope,
    *,
    by: str,
    now: int,
    record: Callable[[Ban], AuditRecord],
) -> Verb[Ban]:
    """Lift a ban, of an erased account too. A lifted copy stays as the exemption of its account."""
    yield LOCK_ACCOUNT(of=user_id)
    lifted = yield from _lift(user_id, scope, by, now)
    if not lifted:
        raise BanNotFound
    yield from copy_active_bans(user_id, now)
    for ban in lifted:
        yield from add_audit_record(record(ban))
        yield from _end_copies(ban, record, by=by, now=now)
    return lifted[-1]


def _lift(user_id: str, scope: BanScope, by: str, now: int) -> Verb[Sequence[Ban]]:
    """Lift all active bans of the scope: copies first, then the person's own, which there is at most one of."""
    rows = yield LIFT(**_place(user_id, scope), now=now, by=by)
    return sorted(map(ban_from_row, rows), key=lambda ban: (not ban.source, ban.ban_id))


def _end_copies(ban: Ban, record: Callable[[Ban], AuditRecord], *, by: str, now: int) -> Verb[None]:
    """End what follows a lifted ban: its digests, and its copies on other accounts."""
    yield DROP_DIGESTS(old=ban.ban_id)
    copies = sorted(map(ban_from_row, (yield LIFT_COPIES(of_source=ban.ban_id, by=by, now=now))), key=_account_order)
    for copy in copies:
        yield from copy_active_bans(copy.user_id, now)
        yield from add_audit_record(record(copy))


def _account_order(ban: Ban) -> str:
    return ban.user_id


# For configuration files, which store their records themselves.


def active_bans(now: int) -> Verb[Sequence[Ban]]:
    """Return one ban of each person and scope: their own, or the newest copy."""
    by_scope: dict[tuple[str, BanScope], Ban] = {}
    for ban in map(ban_from_row, (yield ALL_ACTIVE_BANS(now=now))):
        key = (ban.user_id, ban.scope)
        if key not in by_scope or by_scope[key].source:
            by_scope[key] = ban
    return list(by_scope.values())


def put_ban(follower: BanFollower, before: Ban | None, after: Ban | None, *, by: str, now: int) -> Verb[None]:
    """Replace a ban; without `after` it is lifted, and its copies with it.

    Raises BanChanged unless `before` is an active ban of its scope.
    """
    ban = after or before
    if ban is None:
        return
    if not (yield LOCK_ACCOUNT(of=ban.user_id)):
        raise UserNotFound
    lifted = yield from _lift(ban.user_id, ban.scope, by, now)
    if bool(lifted) != (before is not None) or (
        before and before.ban_id not in {lifted_ban.ban_id for lifted_ban in lifted}
    ):
        raise BanChanged
    if after is not None:
        after = replace(after, author=by, author_rank=BanRank.ADMINISTRATOR)
        yield from _hand_over(follower, lifted, after, now, with_devices=True)
        yield INSERT_BAN(**column_values(after))
    else:
        for lifted_ban in lifted:
            yield from _end_copies(lifted_ban, follower.lift_record, by=by, now=now)
    yield from copy_active_bans(ban.user_id, now)


def _hand_over(
    follower: BanFollower, replaced: Sequence[Ban], ban: Ban, now: int, *, with_devices: bool
) -> Verb[None]:
    """Give the new ban what follows the replaced ones: digests, and copies, which change like it.

    Copies for people whom its author could not ban stay as they are, and end with it at the latest.
    """
    for old in replaced:
        if with_devices and ban.devices:
            yield MOVE_DEVICES(old=old.ban_id, to=ban.ban_id)
        yield MOVE_OTHER_DIGESTS(old=old.ban_id, to=ban.ban_id, ends=digest_end(ban.until, now))
        yield DROP_DIGESTS(old=old.ban_id)
        if not old.source:
            changed: list[str] = []
            for row in (yield COPIED_TO(of_source=old.ban_id, now=now)):
                if (yield from follower.covers(ban, row.user_id, now)):
                    changed.append(row.user_id)  # noqa: PERF401 - no yield in a comprehension
            yield CHANGE_COPIES(
                of_source=old.ban_id,
                users=changed,
                now=now,
                new_reason=ban.reason,
                new_public_text=ban.public_text,
                new_until=ban.until,
                new_author=ban.author,
                new_author_rank=ban.author_rank,
            )
            if ban.until:
                changed += [
                    row.user_id for row in (yield SHORTEN_COPIES(of_source=old.ban_id, new_until=ban.until, now=now))
                ]
            yield RENAME_SOURCE(of_source=old.ban_id, to=ban.ban_id)
            for user_id in changed:
                yield from copy_active_bans(user_id, now)


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
    by_device: dict[str, set[str]] = {}
    for row in (yield ACCOUNTS_ON_DEVICES(of=user_id, since=since)):
        by_device.setdefault(row.device, set()).add(row.user_id)
    return [frozenset(accounts) for accounts in by_device.values()]


def drop_ended_digests(now: int) -> Verb[None]:
    """Drop what is kept of ended bans; expired digests too, and then bans of erased accounts that follow no one."""
    yield DROP_ENDED_DIGESTS(now=now)
    yield DROP_ENDED_BANS_OF_ERASED(now=now)


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
def ban_list_statement(*, of_person: bool, in_scope: bool, state: BanState | None, further: bool) -> Statement:
    conditions = [
        *([_OF_PERSON] if of_person else []),
        *([_SAME_SCOPE] if in_scope else []),
        *([] if state is None else [_STATES[state]]),
        *([bans.c.ban_id < bindparam("before")] if further else []),
    ]
    return Statement(lambda: select(bans).where(*conditions).order_by(bans.c.ban_id.desc()).limit(bindparam("most")))


def list_bans(wanted: BanFilter, now: int, limit: int) -> Verb[Sequence[Ban]]:
    statement = ban_list_statement(
        of_person=bool(wanted.user_id),
        in_scope=wanted.scope is not None,
        state=wanted.state,
        further=bool(wanted.before),
    )
    parameters: dict[str, Any] = {"most": limit}
    if wanted.user_id:
        parameters["of"] = wanted.user_id
    if wanted.scope is not None:
        parameters |= {"at_application": wanted.scope.application_id, "at_project": wanted.scope.project_id}
    if wanted.state in (BanState.ACTIVE, BanState.ENDED):
        parameters["now"] = now
    if wanted.before:
        parameters["before"] = wanted.before
    rows = yield statement(**parameters)
    return [ban_from_row(row) for row in rows]


def ban_from_row(row: Row) -> Ban:
    return Ban(**row._asdict())


class BanStorage(BanAwareStore):
    save_ban = write_with_bans(save_ban)
    lift_ban = write(lift_ban)
    bans_of_device = read(bans_of_device)
    accounts_on_devices = read(accounts_on_devices)
    _record_device = inline_write(record_device)
    _last_device_use = read(last_device_use)

    async def record_device(self, user_id: str, device: str, now: int) -> None:
        if await self._last_device_use(user_id, device) + DAY <= now:
            await self._record_device(user_id, device, now)

    list_bans = snapshot_read(list_bans)
