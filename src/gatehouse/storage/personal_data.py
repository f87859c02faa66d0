"""Stores personal data requests to applications, and their responses (PersonalDataStore)."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Text, and_, bindparam, delete, exists, func, null, or_, select, type_coerce, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.audit.model import AuditRecord
from gatehouse.fields.derive import copy_as
from gatehouse.kernel.ids import new_record_id
from gatehouse.personal_data.model import (
    MAX_ANSWER_BYTES,
    RETENTION_SECONDS,
    CallState,
    ClaimedCall,
    DataCall,
    DataJobKind,
    DataRequest,
    StoredAnswer,
    job_urls,
)
from gatehouse.storage.accounts.users import LOCK_USER
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.permissions.row_readers import APPLICATIONS_WITH_PROJECT, IS_LIVE_APPLICATION
from gatehouse.storage.runner import SqlStore, read, snapshot_read, write
from gatehouse.storage.statements import Notification, Row, Statement, Verb
from gatehouse.storage.tables.permissions import applications
from gatehouse.storage.tables.personal_data import gdpr_calls, gdpr_leases, gdpr_requests

CHANNEL: Final = "gdpr"
SPARE_CALLS: Final = 32  # more addresses than needed are read, because other nodes may claim some first

_LIVE_APPLICATIONS = (
    select(applications.c.application_id, applications.c.settings)
    .select_from(APPLICATIONS_WITH_PROJECT)
    .where(IS_LIVE_APPLICATION)
)
_REQUEST = gdpr_requests.c.request_id == gdpr_calls.c.request_id
_WAITING = gdpr_calls.c.state == CallState.WAITING.value
_THIS = and_(gdpr_calls.c.request_id == bindparam("of"), gdpr_calls.c.position == bindparam("at"))
_LEASED_BY_US = and_(_THIS, _WAITING, gdpr_calls.c.tries == bindparam("held"))
_EXPORT = gdpr_requests.c.kind == DataJobKind.EXPORT.value

# Few applications have sources; the settings of the others are not read.
WITH_SOURCES = Statement(
    lambda: _LIVE_APPLICATIONS.where(type_coerce(applications.c.settings, Text).like('%"gdpr"%')).order_by(
        applications.c.application_id
    )
)
INSERT_REQUEST = Statement(lambda: insert(gdpr_requests))
INSERT_CALL = Statement(lambda: insert(gdpr_calls))
OPEN_EXPORT = Statement(
    lambda: (
        select(gdpr_requests.c.request_id)
        .where(
            gdpr_requests.c.user_id == bindparam("of"),
            _EXPORT,
            gdpr_requests.c.ends_at > bindparam("now"),
            exists().where(_REQUEST, or_(_WAITING, gdpr_calls.c.sealed.is_not(None))),
        )
        .order_by(gdpr_requests.c.created_at.desc())
        .limit(1)
    )
)
_EXPORTS_OF = select(gdpr_requests.c.request_id).where(gdpr_requests.c.user_id == bindparam("of"), _EXPORT)
DROP_EXPORT_CALLS = Statement(lambda: delete(gdpr_calls).where(gdpr_calls.c.request_id.in_(_EXPORTS_OF)))
DROP_EXPORTS = Statement(lambda: delete(gdpr_requests).where(gdpr_requests.c.user_id == bindparam("of"), _EXPORT))

FAIL_ORPHANED_CALLS = Statement(
    lambda: (
        update(gdpr_calls)
        .where(
            _WAITING,
            gdpr_calls.c.application_id.not_in(_LIVE_APPLICATIONS.with_only_columns(applications.c.application_id)),
        )
        .values(state=CallState.FAILED.value, trouble="the application was removed", done_at=bindparam("now"))
    )
)
DROP_EXPIRED_LEASES = Statement(lambda: delete(gdpr_leases).where(gdpr_leases.c.ends_at <= bindparam("now")))
_DUE = (
    select(
        gdpr_calls.c.request_id,
        gdpr_calls.c.position,
        gdpr_calls.c.application_id,
        gdpr_calls.c.url,
        gdpr_calls.c.tries,
        gdpr_calls.c.next_try_at,
        gdpr_requests.c.kind,
        gdpr_requests.c.user_id,
        gdpr_requests.c.created_at,
        func.row_number()
        .over(
            partition_by=gdpr_calls.c.url,
            order_by=(gdpr_calls.c.next_try_at, gdpr_calls.c.request_id, gdpr_calls.c.position),
        )
        .label("turn"),
    )
    .join(gdpr_requests, _REQUEST)
    .where(
        _WAITING,
        gdpr_calls.c.next_try_at <= bindparam("now"),
        ~exists().where(gdpr_leases.c.url == gdpr_calls.c.url),
    )
    .subquery("due")
)
# The order is the same in all transactions, so that no two wait for each other.
DUE_CALLS = Statement(
    lambda: select(_DUE).where(_DUE.c.turn == 1).order_by(_DUE.c.next_try_at, _DUE.c.url).limit(bindparam("most"))
)
# The address is the key: only one worker holds it, so there is one running call per address.
LEASE = Statement(lambda: insert(gdpr_leases).on_conflict_do_nothing().returning(gdpr_leases.c.url))
COUNT_TRY = Statement(
    lambda: (
        update(gdpr_calls)
        .where(_LEASED_BY_US)
        .values(tries=gdpr_calls.c.tries + 1)
        .returning(gdpr_calls.c.request_id)
    )
)
DROP_LEASE = Statement(
    lambda: delete(gdpr_leases).where(
        gdpr_leases.c.url == bindparam("url"),
        gdpr_leases.c.request_id == bindparam("of"),
        gdpr_leases.c.position == bindparam("at"),
        gdpr_leases.c.tries == bindparam("held"),
    )
)
ANSWER_BYTES = Statement(
    lambda: select(func.coalesce(func.sum(func.length(gdpr_calls.c.sealed)), 0).label("bytes")).where(
        gdpr_calls.c.request_id == bindparam("of")
    )
)
SAVE_ANSWER = Statement(
    lambda: (
        update(gdpr_calls)
        .where(_LEASED_BY_US)
        .values(state=CallState.DONE.value, sealed=bindparam("sealed"), done_at=bindparam("now"), trouble="")
        .returning(gdpr_calls.c.request_id)
    )
)
SCHEDULE_RETRY = Statement(
    lambda: (
        update(gdpr_calls).where(_LEASED_BY_US).values(trouble=bindparam("trouble"), next_try_at=bindparam("again"))
    )
)
FAIL_CALL = Statement(
    lambda: (
        update(gdpr_calls)
        .where(_LEASED_BY_US)
        .values(state=CallState.FAILED.value, trouble=bindparam("trouble"), done_at=bindparam("now"))
        .returning(gdpr_calls.c.request_id)
    )
)
REQUESTS = Statement(
    lambda: (
        select(gdpr_requests)
        .where(or_(gdpr_requests.c.request_id == bindparam("name"), gdpr_requests.c.user_id == bindparam("name")))
        .order_by(gdpr_requests.c.created_at.desc(), gdpr_requests.c.request_id)
    )
)
CALLS = Statement(
    lambda: (
        select(
            *(column for column in gdpr_calls.c if column.name != "sealed"),
            gdpr_calls.c.sealed.is_not(None).label("is_answer_kept"),
            func.coalesce(applications.c.name, "").label("application"),
        )
        .outerjoin(applications, applications.c.application_id == gdpr_calls.c.application_id)
        .where(gdpr_calls.c.request_id == bindparam("of"))
        .order_by(gdpr_calls.c.position)
    )
)
ANSWERS = Statement(
    lambda: (
        select(
            gdpr_calls.c.request_id,
            gdpr_calls.c.position,
            gdpr_calls.c.application_id,
            func.coalesce(applications.c.name, "").label("application"),
            gdpr_calls.c.done_at,
            gdpr_calls.c.sealed,
        )
        .join(gdpr_requests, _REQUEST)
        .outerjoin(applications, applications.c.application_id == gdpr_calls.c.application_id)
        .where(
            gdpr_requests.c.user_id == bindparam("of"),
            gdpr_requests.c.ends_at > bindparam("now"),
            gdpr_calls.c.sealed.is_not(None),
        )
        .order_by(gdpr_calls.c.application_id, gdpr_requests.c.created_at, gdpr_calls.c.position)
    )
)
DROP_ANSWER = Statement(lambda: update(gdpr_calls).where(_THIS).values(sealed=null()))
_ENDED = select(gdpr_requests.c.request_id).where(gdpr_requests.c.ends_at <= bindparam("now"))
DROP_ENDED_CALLS = Statement(lambda: delete(gdpr_calls).where(gdpr_calls.c.request_id.in_(_ENDED)))
DROP_ENDED_REQUESTS = Statement(lambda: delete(gdpr_requests).where(gdpr_requests.c.ends_at <= bindparam("now")))


def has_export_sources() -> Verb[bool]:
    return any(job_urls(DataJobKind.EXPORT, row.settings) for row in (yield WITH_SOURCES()))


def request_export(user_id: str, entry: AuditRecord, now: int) -> Verb[str]:
    if not (yield LOCK_USER(of=user_id)):  # of two concurrent requests the second finds the first one's
        raise UserNotFound
    rows = yield OPEN_EXPORT(of=user_id, now=now)
    if rows:
        return str(rows[0].request_id)
    request_id = yield from _create_request(DataJobKind.EXPORT, user_id, now)
    if request_id:
        yield from add_audit_record(entry)
    return request_id


def request_removal(user_id: str, now: int) -> Verb[str]:
    """Delete the person's collected data and notify applications; part of every verb that ends an account."""
    yield DROP_EXPORT_CALLS(of=user_id)
    yield DROP_EXPORTS(of=user_id)
    return (yield from _create_request(DataJobKind.REMOVAL, user_id, now))


def _create_request(job: DataJobKind, user_id: str, now: int) -> Verb[str]:
    """Create a request and return its id; empty when no application has a URL for the job."""
    rows = yield WITH_SOURCES()
    targets = [(row.application_id, url) for row in rows for url in job_urls(job, row.settings)]
    if not targets:
        return ""
    request_id = new_record_id(now)
    yield INSERT_REQUEST(
        request_id=request_id,
        kind=job.value,
        user_id=user_id,
        created_at=now,
        ends_at=now + RETENTION_SECONDS[job],
    )
    yield INSERT_CALL.bulk(
        [
            {
                "request_id": request_id,
                "position": position,
                "application_id": application_id,
                "url": url,
                "state": CallState.WAITING.value,
                "tries": 0,
                "next_try_at": now,
                "trouble": "",
                "done_at": 0,
                "sealed": None,
            }
            for position, (application_id, url) in enumerate(targets)
        ]
    )
    yield Notification(CHANNEL, "")
    return request_id


def claim_due_calls(now: int, lease: int, most: int) -> Verb[Sequence[ClaimedCall]]:
    yield FAIL_ORPHANED_CALLS(now=now)
    yield DROP_EXPIRED_LEASES(now=now)
    due = yield DUE_CALLS(now=now, most=most + SPARE_CALLS)
    calls: list[ClaimedCall] = []
    while due and len(calls) < most:
        calls += yield from _lease_call(due.pop(0), now + lease)
    return calls


def _lease_call(row: Row, until: int) -> Verb[Sequence[ClaimedCall]]:
    place = {"request_id": row.request_id, "position": row.position, "tries": row.tries + 1}
    if not (yield LEASE(url=row.url, **place, ends_at=until)):
        return ()
    if (yield COUNT_TRY(of=row.request_id, at=row.position, held=row.tries)):
        return (_held_call(row),)
    yield DROP_LEASE(url=row.url, of=row.request_id, at=row.position, held=row.tries + 1)  # created in the meantime
    return ()


def complete_call(call: ClaimedCall, sealed: bytes | None, entry: AuditRecord, now: int) -> Verb[bool]:
    if sealed is not None:
        rows = yield ANSWER_BYTES(of=call.request_id)
        if rows[0].bytes + len(sealed) > MAX_ANSWER_BYTES:
            return False
    if (yield SAVE_ANSWER(of=call.request_id, at=call.position, held=call.tries, sealed=sealed, now=now)):
        yield from add_audit_record(entry)
    yield from _release_lease(call)
    return True


def reschedule_call(call: ClaimedCall, trouble: str, next_try_at: int) -> Verb[None]:
    yield SCHEDULE_RETRY(of=call.request_id, at=call.position, held=call.tries, trouble=trouble, again=next_try_at)
    yield from _release_lease(call)


def fail_call(call: ClaimedCall, trouble: str, entry: AuditRecord, now: int) -> Verb[None]:
    if (yield FAIL_CALL(of=call.request_id, at=call.position, held=call.tries, trouble=trouble, now=now)):
        yield from add_audit_record(entry)
    yield from _release_lease(call)


def _release_lease(call: ClaimedCall) -> Verb[None]:
    yield DROP_LEASE(url=call.url, of=call.request_id, at=call.position, held=call.tries)


def find_requests(name: str) -> Verb[Sequence[DataRequest]]:
    requests = []
    for row in (yield REQUESTS(name=name)):
        calls = yield CALLS(of=row.request_id)
        requests.append(_request_from_row(row, [_call_from_row(call) for call in calls]))
    return requests


def uncollected_answers(user_id: str, now: int) -> Verb[Sequence[StoredAnswer]]:
    return [StoredAnswer(**row._asdict()) for row in (yield ANSWERS(of=user_id, now=now))]


def delete_answer(answer: StoredAnswer) -> Verb[None]:
    yield DROP_ANSWER(of=answer.request_id, at=answer.position)


def delete_ended_requests(now: int) -> Verb[None]:
    """Part of sweeping."""
    yield DROP_ENDED_CALLS(now=now)
    yield DROP_ENDED_REQUESTS(now=now)


class PersonalDataStorage(SqlStore):
    has_export_sources = read(has_export_sources)
    request_export = write(request_export)
    claim_due_calls = write(claim_due_calls)
    complete_call = write(complete_call)
    reschedule_call = write(reschedule_call)
    fail_call = write(fail_call)
    find_requests = read(find_requests)
    uncollected_answers = snapshot_read(uncollected_answers)
    delete_answer = write(delete_answer)


def _held_call(row: Row) -> ClaimedCall:
    return copy_as(ClaimedCall, row, kind=DataJobKind(row.kind), tries=row.tries + 1)


def _call_from_row(row: Row) -> DataCall:
    return copy_as(DataCall, row, state=CallState(row.state), is_answer_kept=bool(row.is_answer_kept))


def _request_from_row(row: Row, calls: Sequence[DataCall]) -> DataRequest:
    return DataRequest(
        request_id=row.request_id,
        kind=DataJobKind(row.kind),
        user_id=row.user_id,
        created_at=row.created_at,
        ends_at=row.ends_at,
        calls=calls,
    )
