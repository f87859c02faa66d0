"""Keeps devices that wait for a person (oauth/store.py)."""

from functools import partial
from typing import Final

from sqlalchemy import and_, bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import Record
from gatehouse.kernel.ids import new_request_id
from gatehouse.oauth.model import DeviceRequest, DeviceState, Grant, Holder
from gatehouse.storage.audit import record
from gatehouse.storage.grants import STILL_GOOD, add_grant, by_id, is_allowed
from gatehouse.storage.rows import columns_of
from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.oauth import device_requests, grants

_THIS = device_requests.c.digest == bindparam("of")
_LASTS = device_requests.c.ends_at > bindparam("now")
_WAITING = and_(
    device_requests.c.user_code == bindparam("of"),
    device_requests.c.state == DeviceState.PENDING.value,
    _LASTS,
)

ASK = Statement(insert(device_requests).on_conflict_do_nothing().returning(device_requests.c.digest))
BY_USER_CODE = Statement(select(device_requests).where(_WAITING))
SETTLE = Statement(
    update(device_requests)
    .where(_WAITING)
    .values(state=bindparam("to"), grant_id=bindparam("granted"))
    .returning(device_requests.c.digest)
)
HOLD = Statement(select(device_requests).where(_THIS).with_for_update())
POLLED = Statement(
    update(device_requests).where(_THIS).values(polled_at=bindparam("at"), interval=bindparam("every"))
)
TAKE = Statement(
    delete(device_requests)
    .where(_THIS, _LASTS, device_requests.c.state == DeviceState.APPROVED.value)
    .returning(device_requests.c.grant_id)
)
FIRST_TOKEN = Statement(
    update(grants)
    .where(grants.c.grant_id == bindparam("of"))
    .values(generation=bindparam("first"), refreshed_at=bindparam("at"), attempt=bindparam("by"))
)
TAKEN_BY = Statement(
    select(grants.c.grant_id).where(grants.c.grant_id == bindparam("of"), grants.c.attempt == bindparam("by"))
)
SWEEP = Statement(delete(device_requests).where(device_requests.c.ends_at <= bindparam("ended_by")))

KEPT_AFTER_END: Final = 600  # seconds; a device that still polls is told that its code has expired
LONGER: Final = 5  # seconds more between two polls after one that came too early (RFC 8628 §3.5)


def ask(request: DeviceRequest) -> Verb[bool]:
    return bool((yield ASK(**columns_of(request))))


def by_user_code(user_code: str, now: int) -> Verb[DeviceRequest | None]:
    rows = yield BY_USER_CODE(of=user_code, now=now)
    return _request(rows[0]) if rows else None


def approve(user_code: str, grant: Grant, now: int, entry: Record, *, consented: bool = False) -> Verb[bool]:
    if not (yield STILL_GOOD(of=grant.user_id, rev=grant.rev)):
        return False
    if consented and not (yield from is_allowed(grant)):
        return False
    if not (yield SETTLE(of=user_code, now=now, to=DeviceState.APPROVED.value, granted=grant.grant_id)):
        return False
    yield from add_grant(grant)
    yield from record(entry)
    return True


def deny(user_code: str, now: int, entry: Record) -> Verb[bool]:
    if not (yield SETTLE(of=user_code, now=now, to=DeviceState.DENIED.value, granted="")):
        return False
    yield from record(entry)
    return True


def poll(digest: bytes, now: int) -> Verb[tuple[DeviceRequest | None, bool]]:
    rows = yield HOLD(of=digest)
    if not rows:
        return None, False
    request = _request(rows[0])
    is_early = request.polled_at > 0 and now < request.polled_at + request.interval
    yield POLLED(of=digest, at=now, every=request.interval + LONGER if is_early else request.interval)
    return request, is_early


def take(request: DeviceRequest, now: int, *, generation: int, attempt: str) -> Verb[Holder | None]:
    rows = yield TAKE(of=request.digest, now=now)
    if rows:
        yield FIRST_TOKEN(of=rows[0].grant_id, first=generation, at=now, by=attempt)
    else:
        rows = yield TAKEN_BY(of=request.grant_id, by=attempt)  # by an earlier run
    return (yield from by_id(rows[0].grant_id, now)) if rows else None


def sweep(now: int) -> Verb[None]:
    yield SWEEP(ended_by=now - KEPT_AFTER_END)


class DeviceStorage(Stored):
    ask = act(ask)
    by_user_code = look(by_user_code)
    approve = act(approve)
    deny = act(deny)
    poll = act(poll)

    async def take(self, request: DeviceRequest, now: int, *, generation: int) -> Holder | None:
        make = partial(take, request, now, generation=generation, attempt=new_request_id())
        return await self.runner.act(make, repeatable=True)


def _request(row: Row) -> DeviceRequest:
    fields = row._asdict()
    return DeviceRequest(**{**fields, "scopes": tuple(fields["scopes"]), "state": DeviceState(fields["state"])})
