"""Stores the requests of devices that wait for a person (oauth/store.py)."""

from functools import partial
from typing import Final

from sqlalchemy import and_, bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.ids import new_request_id
from gatehouse.oauth.model import DeviceRequest, DeviceState, Grant, GrantHolder
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.oauth.grants import LOCK_UNREVOKED_USER, find_live_grant, has_consent, insert_grant
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.oauth import device_requests, grants

_THIS_REQUEST = device_requests.c.digest == bindparam("of")
_UNEXPIRED = device_requests.c.ends_at > bindparam("now")
_WAITING = and_(
    device_requests.c.user_code == bindparam("of"),
    device_requests.c.state == DeviceState.PENDING.value,
    _UNEXPIRED,
)

INSERT_REQUEST = Statement(
    lambda: insert(device_requests).on_conflict_do_nothing().returning(device_requests.c.digest)
)
BY_USER_CODE = Statement(lambda: select(device_requests).where(_WAITING))
SET_STATE = Statement(
    lambda: (
        update(device_requests)
        .where(_WAITING)
        .values(state=bindparam("to"), grant_id=bindparam("granted"))
        .returning(device_requests.c.digest)
    )
)
LOCK_REQUEST = Statement(lambda: select(device_requests).where(_THIS_REQUEST).with_for_update())
RECORD_POLL = Statement(
    lambda: (
        update(device_requests).where(_THIS_REQUEST).values(polled_at=bindparam("at"), interval=bindparam("every"))
    )
)
TAKE_APPROVED = Statement(
    lambda: (
        delete(device_requests)
        .where(_THIS_REQUEST, _UNEXPIRED, device_requests.c.state == DeviceState.APPROVED.value)
        .returning(device_requests.c.grant_id)
    )
)
SET_FIRST_GENERATION = Statement(
    lambda: (
        update(grants)
        .where(grants.c.grant_id == bindparam("of"))
        .values(generation=bindparam("first"), refreshed_at=bindparam("at"), attempt=bindparam("by"))
    )
)
REDEEMED_BY = Statement(
    lambda: select(grants.c.grant_id).where(grants.c.grant_id == bindparam("of"), grants.c.attempt == bindparam("by"))
)
DROP_ENDED = Statement(lambda: delete(device_requests).where(device_requests.c.ends_at <= bindparam("ended_by")))

RETENTION_AFTER_END: Final = 600  # seconds in which a polling device learns that its code has expired
SLOW_DOWN_SECONDS: Final = 5  # seconds more between two polls after one that came too early (RFC 8628 §3.5)


def create_request(request: DeviceRequest) -> Verb[bool]:
    return bool((yield INSERT_REQUEST(**column_values(request))))


def find_pending_request(user_code: str, now: int) -> Verb[DeviceRequest | None]:
    rows = yield BY_USER_CODE(of=user_code, now=now)
    return _request_from_row(rows[0]) if rows else None


def approve_request(
    user_code: str, grant: Grant, now: int, entry: AuditRecord, *, consented: bool = False
) -> Verb[bool]:
    if not (yield LOCK_UNREVOKED_USER(of=grant.user_id, rev=grant.rev)):
        return False
    if consented and not (yield from has_consent(grant)):
        return False
    if not (yield SET_STATE(of=user_code, now=now, to=DeviceState.APPROVED.value, granted=grant.grant_id)):
        return False
    yield from insert_grant(grant)
    yield from add_audit_record(entry)
    return True


def deny_request(user_code: str, now: int, entry: AuditRecord) -> Verb[bool]:
    if not (yield SET_STATE(of=user_code, now=now, to=DeviceState.DENIED.value, granted="")):
        return False
    yield from add_audit_record(entry)
    return True


def record_poll(digest: bytes, now: int) -> Verb[tuple[DeviceRequest | None, bool]]:
    rows = yield LOCK_REQUEST(of=digest)
    if not rows:
        return None, False
    request = _request_from_row(rows[0])
    is_early = request.polled_at > 0 and now < request.polled_at + request.interval
    yield RECORD_POLL(of=digest, at=now, every=request.interval + SLOW_DOWN_SECONDS if is_early else request.interval)
    return request, is_early


def redeem_request(request: DeviceRequest, now: int, *, generation: int, attempt: str) -> Verb[GrantHolder | None]:
    rows = yield TAKE_APPROVED(of=request.digest, now=now)
    if rows:
        yield SET_FIRST_GENERATION(of=rows[0].grant_id, first=generation, at=now, by=attempt)
    else:
        rows = yield REDEEMED_BY(of=request.grant_id, by=attempt)  # by an earlier run
    return (yield from find_live_grant(rows[0].grant_id, now)) if rows else None


def sweep_device_requests(now: int) -> Verb[None]:
    yield DROP_ENDED(ended_by=now - RETENTION_AFTER_END)


class DeviceStorage(SqlStore):
    create_request = write(create_request)
    find_pending_request = read(find_pending_request)
    approve_request = write(approve_request)
    deny_request = write(deny_request)
    record_poll = write(record_poll)

    async def redeem_request(self, request: DeviceRequest, now: int, *, generation: int) -> GrantHolder | None:
        make = partial(redeem_request, request, now, generation=generation, attempt=new_request_id())
        return await self.runner.write(make, repeatable=True)


def _request_from_row(row: Row) -> DeviceRequest:
    fields = row._asdict()
    return DeviceRequest(**{**fields, "scopes": tuple(fields["scopes"]), "state": DeviceState(fields["state"])})
