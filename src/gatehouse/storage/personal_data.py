"""Keeps what applications are asked about people, and what they answer (PersonalDataStore)."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Text, and_, bindparam, delete, exists, func, null, or_, select, type_coerce, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.audit.model import Record
from gatehouse.kernel.ids import new_record_id
from gatehouse.personal_data.model import (
    ANSWERS_LARGEST,
    KEPT_FOR,
    CallState,
    DataCall,
    DataRequest,
    Errand,
    HeldCall,
    KeptAnswer,
    addresses_for,
)
from gatehouse.storage.audit import record
from gatehouse.storage.live_applications import LIVE_APPLICATION, WITH_PROJECT
from gatehouse.storage.runner import Stored, act, look, survey
from gatehouse.storage.statements import Notice, Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.applications import applications
from gatehouse.storage.tables.personal_data import gdpr_calls, gdpr_leases, gdpr_requests

CHANNEL: Final = "gdpr"
SPARE: Final = 32  # addresses looked at beyond those wanted: others may be quicker at some

_LIVE = (
    select(applications.c.application_id, applications.c.settings).select_from(WITH_PROJECT).where(LIVE_APPLICATION)
)
_REQUEST = gdpr_requests.c.request_id == gdpr_calls.c.request_id
_WAITING = gdpr_calls.c.state == CallState.WAITING.value
_THIS = and_(gdpr_calls.c.request_id == bindparam("of"), gdpr_calls.c.position == bindparam("at"))
_HELD = and_(_THIS, _WAITING, gdpr_calls.c.tries == bindparam("held"))
_EXPORT = gdpr_requests.c.kind == Errand.EXPORT.value

# Few have sources: the others' settings need not travel.
WITH_SOURCES = Statement(
    _LIVE.where(type_coerce(applications.c.settings, Text).like('%"gdpr"%')).order_by(applications.c.application_id)
)
INSERT_REQUEST = Statement(insert(gdpr_requests))
INSERT_CALL = Statement(insert(gdpr_calls))
HOLD_USER = Statement(select(users.c.user_id).where(users.c.user_id == bindparam("of")).with_for_update())
OPEN_EXPORT = Statement(
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
_EXPORTS_OF = select(gdpr_requests.c.request_id).where(gdpr_requests.c.user_id == bindparam("of"), _EXPORT)
DROP_EXPORT_CALLS = Statement(delete(gdpr_calls).where(gdpr_calls.c.request_id.in_(_EXPORTS_OF)))
DROP_EXPORTS = Statement(delete(gdpr_requests).where(gdpr_requests.c.user_id == bindparam("of"), _EXPORT))

DROP_DEAD = Statement(
    update(gdpr_calls)
    .where(_WAITING, gdpr_calls.c.application_id.not_in(_LIVE.with_only_columns(applications.c.application_id)))
    .values(state=CallState.FAILED.value, trouble="the application was removed", done_at=bindparam("now"))
)
FREE = Statement(delete(gdpr_leases).where(gdpr_leases.c.ends_at <= bindparam("now")))
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
# In one order for everybody, so that no two wait for each other.
DUE = Statement(
    select(_DUE).where(_DUE.c.turn == 1).order_by(_DUE.c.next_try_at, _DUE.c.url).limit(bindparam("most"))
)
# The address is the key: of all who want to call it, one holds it (one call in flight for an address).
LEASE = Statement(insert(gdpr_leases).on_conflict_do_nothing().returning(gdpr_leases.c.url))
TAKE = Statement(
    update(gdpr_calls).where(_HELD).values(tries=gdpr_calls.c.tries + 1).returning(gdpr_calls.c.request_id)
)
RELEASE = Statement(
    delete(gdpr_leases).where(
        gdpr_leases.c.url == bindparam("url"),
        gdpr_leases.c.request_id == bindparam("of"),
        gdpr_leases.c.position == bindparam("at"),
        gdpr_leases.c.tries == bindparam("held"),
    )
)
KEPT_BYTES = Statement(
    select(func.coalesce(func.sum(func.length(gdpr_calls.c.sealed)), 0).label("bytes")).where(
        gdpr_calls.c.request_id == bindparam("of")
    )
)
DONE = Statement(
    update(gdpr_calls)
    .where(_HELD)
    .values(state=CallState.DONE.value, sealed=bindparam("sealed"), done_at=bindparam("now"), trouble="")
    .returning(gdpr_calls.c.request_id)
)
PUT_OFF = Statement(
    update(gdpr_calls).where(_HELD).values(trouble=bindparam("trouble"), next_try_at=bindparam("again"))
)
GIVE_UP = Statement(
    update(gdpr_calls)
    .where(_HELD)
    .values(state=CallState.FAILED.value, trouble=bindparam("trouble"), done_at=bindparam("now"))
    .returning(gdpr_calls.c.request_id)
)
REQUESTS = Statement(
    select(gdpr_requests)
    .where(or_(gdpr_requests.c.request_id == bindparam("name"), gdpr_requests.c.user_id == bindparam("name")))
    .order_by(gdpr_requests.c.created_at.desc(), gdpr_requests.c.request_id)
)
CALLS = Statement(
    select(
        *(column for column in gdpr_calls.c if column.name != "sealed"),
        gdpr_calls.c.sealed.is_not(None).label("is_answer_kept"),
        func.coalesce(applications.c.name, "").label("application"),
    )
    .outerjoin(applications, applications.c.application_id == gdpr_calls.c.application_id)
    .where(gdpr_calls.c.request_id == bindparam("of"))
    .order_by(gdpr_calls.c.position)
)
ANSWERS = Statement(
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
COLLECT = Statement(update(gdpr_calls).where(_THIS).values(sealed=null()))
_ENDED = select(gdpr_requests.c.request_id).where(gdpr_requests.c.ends_at <= bindparam("now"))
FORGET_CALLS = Statement(delete(gdpr_calls).where(gdpr_calls.c.request_id.in_(_ENDED)))
FORGET_REQUESTS = Statement(delete(gdpr_requests).where(gdpr_requests.c.ends_at <= bindparam("now")))


def has_sources() -> Verb[bool]:
    return any(addresses_for(Errand.EXPORT, row.settings) for row in (yield WITH_SOURCES()))


def ask_export(user_id: str, entry: Record, now: int) -> Verb[str]:
    if not (yield HOLD_USER(of=user_id)):  # of two who ask at once the second finds what the first asked
        raise UserNotFound
    found = yield OPEN_EXPORT(of=user_id, now=now)
    if found:
        return str(found[0].request_id)
    asked = yield from _request(Errand.EXPORT, user_id, now)
    if asked:
        yield from record(entry)
    return asked


def request_removal(user_id: str, now: int) -> Verb[str]:
    """Part of every verb that ends an account: what was fetched for the person goes, and applications are told."""
    yield DROP_EXPORT_CALLS(of=user_id)
    yield DROP_EXPORTS(of=user_id)
    return (yield from _request(Errand.REMOVAL, user_id, now))


def _request(errand: Errand, user_id: str, now: int) -> Verb[str]:
    """The id of the request; none when no application has an address for the errand."""
    rows = yield WITH_SOURCES()
    targets = [(row.application_id, url) for row in rows for url in addresses_for(errand, row.settings)]
    if not targets:
        return ""
    request_id = new_record_id(now)
    yield INSERT_REQUEST(
        request_id=request_id, kind=errand.value, user_id=user_id, created_at=now, ends_at=now + KEPT_FOR[errand]
    )
    yield INSERT_CALL.many(
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
    yield Notice(CHANNEL, "")
    return request_id


def claim(now: int, lease: int, most: int) -> Verb[Sequence[HeldCall]]:
    yield DROP_DEAD(now=now)
    yield FREE(now=now)
    due = yield DUE(now=now, most=most + SPARE)
    held: list[HeldCall] = []
    while due and len(held) < most:
        held += yield from _take(due.pop(0), now + lease)
    return held


def _take(row: Row, until: int) -> Verb[Sequence[HeldCall]]:
    place = {"request_id": row.request_id, "position": row.position, "tries": row.tries + 1}
    if not (yield LEASE(url=row.url, **place, ends_at=until)):
        return ()
    if (yield TAKE(of=row.request_id, at=row.position, held=row.tries)):
        return (_held(row),)
    yield RELEASE(url=row.url, of=row.request_id, at=row.position, held=row.tries + 1)  # made meanwhile
    return ()


def answered(call: HeldCall, sealed: bytes | None, entry: Record, now: int) -> Verb[bool]:
    if sealed is not None:
        kept = yield KEPT_BYTES(of=call.request_id)
        if kept[0].bytes + len(sealed) > ANSWERS_LARGEST:
            return False
    if (yield DONE(of=call.request_id, at=call.position, held=call.tries, sealed=sealed, now=now)):
        yield from record(entry)
    yield from _release(call)
    return True


def put_off(call: HeldCall, trouble: str, next_try_at: int) -> Verb[None]:
    yield PUT_OFF(of=call.request_id, at=call.position, held=call.tries, trouble=trouble, again=next_try_at)
    yield from _release(call)


def give_up(call: HeldCall, trouble: str, entry: Record, now: int) -> Verb[None]:
    if (yield GIVE_UP(of=call.request_id, at=call.position, held=call.tries, trouble=trouble, now=now)):
        yield from record(entry)
    yield from _release(call)


def _release(call: HeldCall) -> Verb[None]:
    yield RELEASE(url=call.url, of=call.request_id, at=call.position, held=call.tries)


def requests(name: str) -> Verb[Sequence[DataRequest]]:
    found = []
    for row in (yield REQUESTS(name=name)):
        calls = yield CALLS(of=row.request_id)
        found.append(_whole(row, [_call(call) for call in calls]))
    return found


def answers(user_id: str, now: int) -> Verb[Sequence[KeptAnswer]]:
    return [KeptAnswer(**row._asdict()) for row in (yield ANSWERS(of=user_id, now=now))]


def collected(answer: KeptAnswer) -> Verb[None]:
    yield COLLECT(of=answer.request_id, at=answer.position)


def forget_ended(now: int) -> Verb[None]:
    """Part of sweeping."""
    yield FORGET_CALLS(now=now)
    yield FORGET_REQUESTS(now=now)


class PersonalDataStorage(Stored):
    has_sources = look(has_sources)
    ask_export = act(ask_export)
    claim = act(claim)
    answered = act(answered)
    put_off = act(put_off)
    give_up = act(give_up)
    requests = look(requests)
    answers = survey(answers)
    collected = act(collected)


def _held(row: Row) -> HeldCall:
    return HeldCall(
        request_id=row.request_id,
        position=row.position,
        errand=Errand(row.kind),
        user_id=row.user_id,
        application_id=row.application_id,
        url=row.url,
        created_at=row.created_at,
        tries=row.tries + 1,
    )


def _call(row: Row) -> DataCall:
    return DataCall(
        application_id=row.application_id,
        application=row.application,
        url=row.url,
        state=CallState(row.state),
        tries=row.tries,
        next_try_at=row.next_try_at,
        trouble=row.trouble,
        done_at=row.done_at,
        is_answer_kept=bool(row.is_answer_kept),
    )


def _whole(row: Row, calls: Sequence[DataCall]) -> DataRequest:
    return DataRequest(
        request_id=row.request_id,
        errand=Errand(row.kind),
        user_id=row.user_id,
        created_at=row.created_at,
        ends_at=row.ends_at,
        calls=calls,
    )
