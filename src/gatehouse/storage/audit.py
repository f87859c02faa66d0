"""Keeps the audit log (audit/store.py)."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import and_, bindparam, delete, func, insert, null, or_, select, update

from gatehouse.audit.errors import SealedMeanwhile
from gatehouse.audit.model import Record, Refusal, Seal
from gatehouse.storage.runner import Stored, act, look, survey
from gatehouse.storage.statements import AnyOf, Row, Statement, Verb
from gatehouse.storage.tables.audit import audit_events, audit_refusals, audit_seals

FORGOTTEN_AT_ONCE: Final = 1_000  # records, where no sealed batch has more

INSERT_EVENT = Statement(insert(audit_events))
UNSEALED = Statement(
    select(audit_events)
    .where(audit_events.c.place.is_(None))
    .order_by(audit_events.c.at, audit_events.c.record_id)
    .limit(bindparam("most"))
)
NEWEST_SEAL = Statement(select(audit_seals).order_by(audit_seals.c.place.desc()).limit(1))
INSERT_SEAL = Statement(insert(audit_seals))
PLACE_EVENT = Statement(
    update(audit_events)
    .where(audit_events.c.record_id == bindparam("record"), audit_events.c.place.is_(None))
    .values(place=bindparam("new_place"))
)
COUNT_PLACED = Statement(
    select(func.count().label("found")).where(
        AnyOf(audit_events.c.record_id, "record_ids"),
        audit_events.c.place > bindparam("after"),
        audit_events.c.place <= bindparam("last"),
    )
)
INSERT_REFUSAL = Statement(
    insert(audit_refusals)
    .values(
        {
            name: bindparam(name)
            for name in ("record_id", "at", "event", "reason", "subject", "request_id", "details", "personal")
        }
    )
    .returning(audit_refusals.c.position)
)
DROP_OLD_REFUSALS = Statement(delete(audit_refusals).where(audit_refusals.c.position <= bindparam("oldest")))
EVENT_BY_ID = Statement(select(audit_events).where(audit_events.c.record_id == bindparam("record_id")))
REFUSAL_BY_ID = Statement(select(audit_refusals).where(audit_refusals.c.record_id == bindparam("record_id")))
EVENTS_FROM = Statement(
    select(audit_events)
    .where(audit_events.c.place >= bindparam("first"))
    .order_by(audit_events.c.place)
    .limit(bindparam("most"))
)
SEALS_FROM = Statement(
    select(audit_seals)
    .where(audit_seals.c.place >= bindparam("first"))
    .order_by(audit_seals.c.place)
    .limit(bindparam("most"))
)
NEWEST = Statement(
    select(audit_events)
    .where(
        or_(bindparam("any_subject"), audit_events.c.subject == bindparam("subject")),
        or_(bindparam("any_event"), audit_events.c.event == bindparam("event")),
    )
    .order_by(audit_events.c.at.desc(), audit_events.c.record_id)
    .limit(bindparam("most"))
)
ERASE_PERSONAL = Statement(
    update(audit_events)
    .where(audit_events.c.subject == bindparam("of"), audit_events.c.personal.is_not(None))
    .values(personal=null(), salt=null())
    .returning(audit_events.c.record_id)
)
OLDEST = Statement(select(func.min(audit_events.c.place).label("place")))
_OLD_SEAL = and_(audit_seals.c.place >= bindparam("oldest"), audit_seals.c.at < bindparam("at"))
LAST_SEAL_WITHIN = Statement(
    select(func.max(audit_seals.c.place).label("place")).where(_OLD_SEAL, audit_seals.c.place < bindparam("end"))
)
NEXT_SEAL = Statement(
    select(audit_seals.c.place, audit_seals.c.at)
    .where(audit_seals.c.place >= bindparam("oldest"))
    .order_by(audit_seals.c.place)
    .limit(1)
)
FORGET_UP_TO = Statement(
    delete(audit_events).where(audit_events.c.place <= bindparam("last")).returning(audit_events.c.record_id)
)


def record(entry: Record) -> Verb[None]:
    """Insert the record; part of every mutating verb, so that no change commits without it."""
    yield INSERT_EVENT(
        record_id=entry.record_id,
        at=entry.at,
        event=entry.event,
        actor=entry.actor,
        subject=entry.subject,
        request_id=entry.request_id,
        details=entry.details,
        personal=entry.personal,
        salt=entry.salt,
        commitment=entry.commitment,
        mac=entry.mac,
        place=entry.place,
    )


def unsealed(limit: int) -> Verb[Sequence[Record]]:
    rows = yield UNSEALED(most=limit)
    return [_record(row) for row in rows]


def newest_seal() -> Verb[Seal | None]:
    rows = yield NEWEST_SEAL()
    return _seal(rows[0]) if rows else None


def append(record_ids: Sequence[str], seal: Seal) -> Verb[None]:
    after = seal.place - len(record_ids)
    yield PLACE_EVENT.many(
        [{"record": record_id, "new_place": place} for place, record_id in enumerate(record_ids, after + 1)]
    )
    placed = yield COUNT_PLACED(record_ids=list(record_ids), after=after, last=seal.place)
    if placed[0].found != len(record_ids):
        raise SealedMeanwhile
    yield INSERT_SEAL(place=seal.place, at=seal.at, link=seal.link, kid=seal.kid, signature=seal.signature)


def refuse(refusal: Refusal, kept: int) -> Verb[None]:
    rows = yield INSERT_REFUSAL(
        record_id=refusal.record_id,
        at=refusal.at,
        event=refusal.event,
        reason=refusal.reason,
        subject=refusal.subject,
        request_id=refusal.request_id,
        details=refusal.details,
        personal=refusal.personal,
    )
    yield DROP_OLD_REFUSALS(oldest=rows[0].position - kept)


def find(record_id: str) -> Verb[Record | Refusal | None]:
    rows = yield EVENT_BY_ID(record_id=record_id)
    if rows:
        return _record(rows[0])
    rows = yield REFUSAL_BY_ID(record_id=record_id)
    return refusal_of(rows[0]) if rows else None


def records_from(place: int, limit: int) -> Verb[Sequence[Record]]:
    rows = yield EVENTS_FROM(first=place, most=limit)
    return [_record(row) for row in rows]


def seals_from(place: int, limit: int) -> Verb[Sequence[Seal]]:
    rows = yield SEALS_FROM(first=place, most=limit)
    return [_seal(row) for row in rows]


def newest(limit: int, subject: str, event: str) -> Verb[Sequence[Record]]:
    rows = yield NEWEST(most=limit, subject=subject, event=event, any_subject=not subject, any_event=not event)
    return [_record(row) for row in rows]


def erase_personal(subject: str, entry: Record) -> Verb[int]:
    rows = yield ERASE_PERSONAL(of=subject)
    yield from record(entry)
    return len(rows)


def forget_some(at: int) -> Verb[int]:
    """From one seal to another, so that what is left begins behind one; as few at a time as that allows."""
    oldest = (yield OLDEST())[0].place
    if oldest is None:
        return 0
    last = (yield LAST_SEAL_WITHIN(oldest=oldest, at=at, end=oldest + FORGOTTEN_AT_ONCE))[0].place
    if last is None:
        seals = yield NEXT_SEAL(oldest=oldest)
        if not seals or seals[0].at >= at:
            return 0
        last = seals[0].place
    return len((yield FORGET_UP_TO(last=last)))


class AuditStorage(Stored):
    unsealed = look(unsealed)
    newest_seal = look(newest_seal)
    append = act(append)
    refuse = act(refuse)
    find = look(find)
    records_from = survey(records_from)
    seals_from = survey(seals_from)
    newest = survey(newest)
    erase_personal = act(erase_personal)
    _forget_some = act(forget_some)

    async def forget_before(self, at: int) -> int:
        forgotten = 0
        while some := await self._forget_some(at):
            forgotten += some
        return forgotten


def _record(row: Row) -> Record:
    return Record(**row._asdict())


def _seal(row: Row) -> Seal:
    return Seal(**row._asdict())


def refusal_of(row: Row) -> Refusal:
    fields = row._asdict()
    del fields["position"]
    return Refusal(**fields)
