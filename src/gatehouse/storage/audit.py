"""Stores the audit log (audit/model.py)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import (
    CTE,
    BigInteger,
    Boolean,
    ColumnElement,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    literal_column,
    null,
    or_,
    select,
    true,
    tuple_,
    type_coerce,
    update,
)
from sqlalchemy.sql.dml import ReturningInsert

from gatehouse.audit.model import SIGN_IN_EVENTS, AuditRecord, ChainEnd, HeadSwap, Refusal, Seal, SealedMeanwhile
from gatehouse.storage.installation import MASTER_KEYS, read_value, replace_value, set_value, set_value_once
from gatehouse.storage.rows import column_values
from gatehouse.storage.runner import SqlStore, read, snapshot_read, write
from gatehouse.storage.statements import DialectFunction, JsonDocument, Notification, Row, Statement, Verb
from gatehouse.storage.tables.audit import audit_events, audit_refusals, audit_seals
from gatehouse.storage.tables.installation import installation

CHANNEL: Final = "audit_sealed"
AUDIT_HEAD: Final = "audit_head"  # the fact that holds the sealed head of the chain
AUDIT_VERIFIED: Final = "audit_verified"  # the one that holds how far the chain is verified, sealed too
DELETE_BATCH: Final = 1_000  # records; no sealed batch has more
INSERT_BATCH: Final = 500  # records in one round trip
CHAIN_LOCK_ID: Final = 0x6368_6169  # any constant of our own


class TriedLock(DialectFunction[bool]):
    """A lock of the transaction, taken if it is free. SQLite needs none: it has one writer at a time."""

    inherit_cache = True
    type = Boolean()
    on_postgres = "pg_try_advisory_xact_lock({0})"
    on_sqlite = "1"


class SwitchOff(DialectFunction[str]):
    """Forbid PostgreSQL's planner something for the rest of the transaction.

    Statistics are oldest when a backlog is longest, so the statements of sealing have one possible plan. SQLite has
    no statistics.
    """

    inherit_cache = True
    type = Text()
    on_postgres = "set_config({0}, 'off', true)"
    on_sqlite = "'off'"


class NumberedStrings(DialectFunction[str]):
    """The strings of a list parameter as rows with `value` and `ordinality`, which begins at 1."""

    inherit_cache = True
    on_postgres = "json_array_elements_text(CAST({0} AS json)) WITH ORDINALITY"
    on_sqlite = "(SELECT value, key + 1 AS ordinality FROM json_each({0}))"


def _switched_off(*names: str) -> list[ColumnElement[str]]:
    return [SwitchOff(literal_column(f"'enable_{name}'")).label(name) for name in names]


INSERT_EVENT = Statement(lambda: insert(audit_events))
# Documents are read as text: an unreadable one is reported by verification and does not stop the sealing.
_RAW_EVENT = [
    type_coerce(column, Text()).label(column.name) if isinstance(column.type, JsonDocument) else column
    for column in audit_events.c
]
# Then only the index of unsealed records has their order.
READ_BY_INDEX = Statement(lambda: select(*_switched_off("sort", "incremental_sort")))
_UNSEALED_ORDER = (audit_events.c.at, audit_events.c.record_id)
# Without the hint SQLite takes the index of places, and sorts all unsealed records.
_UNSEALED = (
    select(*_RAW_EVENT)
    .with_hint(audit_events, "INDEXED BY ix_audit_events_unsealed", "sqlite")
    .where(audit_events.c.place.is_(None))
    .order_by(*_UNSEALED_ORDER)
    .limit(bindparam("most"))
)
UNSEALED = Statement(lambda: _UNSEALED)
UNSEALED_AFTER = Statement(
    lambda: _UNSEALED.where(
        tuple_(*_UNSEALED_ORDER) > tuple_(bindparam("at", type_=BigInteger()), bindparam("record_id", type_=Text()))
    )
)
_SEAL = select(audit_seals).order_by(audit_seals.c.place.desc()).limit(1).subquery("newest_seal")
_PREVIOUS = (
    select(func.coalesce(func.max(audit_seals.c.place), 0))
    .where(audit_seals.c.place < _SEAL.c.place)
    .correlate(_SEAL)
)
CHAIN_END = Statement(
    lambda: select(
        select(installation.c.value).where(installation.c.name == AUDIT_HEAD).scalar_subquery().label("head"),
        func.coalesce(
            select(installation.c.value).where(installation.c.name == MASTER_KEYS).scalar_subquery(), ""
        ).label("master_keys"),
        _PREVIOUS.scalar_subquery().label("previous"),
        select(func.coalesce(func.min(audit_events.c.place), 0)).scalar_subquery().label("first_place"),
        select(func.coalesce(func.max(audit_events.c.place), 0)).scalar_subquery().label("last_place"),
        *_SEAL.c,
    ).select_from(select(literal(1).label("one")).subquery("one").outerjoin(_SEAL, true()))
)
INSERT_SEAL = Statement(lambda: insert(audit_seals))
# Then records are found by their ids alone.
LOCK_CHAIN = Statement(
    lambda: select(
        TriedLock(literal_column(str(CHAIN_LOCK_ID))).label("taken"),
        *_switched_off("seqscan", "hashjoin", "mergejoin"),
    )
)
_BATCH = NumberedStrings(bindparam("record_ids", type_=JsonDocument())).table_valued(
    "value", "ordinality", name="batch"
)
PLACE_EVENTS = Statement(
    lambda: (
        update(audit_events)
        .where(
            audit_events.c.record_id == _BATCH.c.value,
            # `place IS NULL` would allow the indexes of all unsealed records.
            func.coalesce(audit_events.c.place, literal_column("0")) == literal_column("0"),
        )
        .values(place=_BATCH.c.ordinality + bindparam("after", type_=BigInteger()))
        .returning(audit_events.c.record_id)
    )
)
INSERT_REFUSAL = Statement(
    lambda: (
        insert(audit_refusals)
        .values(
            {
                name: bindparam(name)
                for name in ("record_id", "at", "event", "reason", "subject", "request_id", "details", "personal")
            }
        )
        .returning(audit_refusals.c.position)
    )
)
DROP_OLD_REFUSALS = Statement(lambda: delete(audit_refusals).where(audit_refusals.c.position <= bindparam("oldest")))
RECORD_EXISTS = Statement(
    lambda: select(audit_events.c.record_id).where(audit_events.c.record_id == bindparam("record_id"))
)
EVENT_BY_ID = Statement(lambda: select(audit_events).where(audit_events.c.record_id == bindparam("record_id")))
REFUSAL_BY_ID = Statement(lambda: select(audit_refusals).where(audit_refusals.c.record_id == bindparam("record_id")))
EVENTS_FROM = Statement(
    lambda: (
        select(*_RAW_EVENT)
        .where(audit_events.c.place >= bindparam("first"))
        .order_by(audit_events.c.place)
        .limit(bindparam("most"))
    )
)
SEALS_FROM = Statement(
    lambda: (
        select(audit_seals)
        .where(audit_seals.c.place >= bindparam("first"))
        .order_by(audit_seals.c.place)
        .limit(bindparam("most"))
    )
)
NEWEST_RECORDS = Statement(
    lambda: (
        select(audit_events)
        .where(
            or_(bindparam("any_subject"), audit_events.c.subject == bindparam("subject")),
            or_(bindparam("any_event"), audit_events.c.event == bindparam("event")),
        )
        .order_by(audit_events.c.at.desc(), audit_events.c.record_id)
        .limit(bindparam("most"))
    )
)
HISTORY_ERASED: Final = "sign_in_history_erased"  # Unix time up to which sign-ins have no personal part
ERASE_BATCH: Final = 1_000  # records that one transaction passes
NTH_RECORD_AFTER = Statement(
    lambda: (
        select(audit_events.c.at)
        .where(audit_events.c.at > bindparam("after"))
        .order_by(audit_events.c.at)
        .offset(ERASE_BATCH - 1)
        .limit(1)
    )
)
ERASE_SIGN_INS = Statement(
    lambda: (
        update(audit_events)
        .where(
            audit_events.c.at > bindparam("after"),
            audit_events.c.at <= bindparam("until"),
            or_(*(audit_events.c.event == event for event in SIGN_IN_EVENTS)),
            audit_events.c.personal.is_not(None),
        )
        .values(personal=null(), salt=null())
    )
)
ERASE_PERSONAL = Statement(
    lambda: (
        update(audit_events)
        .where(audit_events.c.subject == bindparam("of"), audit_events.c.personal.is_not(None))
        .values(personal=null(), salt=null())
        .returning(audit_events.c.record_id)
    )
)
_OLD_SEAL = and_(audit_seals.c.place >= bindparam("oldest"), audit_seals.c.at < bindparam("at"))
LAST_SEAL_WITHIN = Statement(
    lambda: select(func.max(audit_seals.c.place).label("place")).where(
        _OLD_SEAL, audit_seals.c.place < bindparam("end")
    )
)
NEXT_SEAL = Statement(
    lambda: (
        select(audit_seals.c.place)
        .where(audit_seals.c.place >= bindparam("oldest"))
        .order_by(audit_seals.c.place)
        .limit(1)
    )
)
SEAL_AT = Statement(lambda: select(audit_seals).where(audit_seals.c.place == bindparam("place")))
SEAL_BEFORE = Statement(
    lambda: select(func.coalesce(func.max(audit_seals.c.place), 0).label("place")).where(
        audit_seals.c.place < bindparam("place")
    )
)
DROP_RECORDS_UP_TO = Statement(
    lambda: delete(audit_events).where(audit_events.c.place <= bindparam("last")).returning(audit_events.c.record_id)
)


def add_audit_record(entry: AuditRecord) -> Verb[None]:
    """Insert the record; part of every mutating verb, so that no change commits without it."""
    yield INSERT_EVENT(**event_values(entry))


def event_values(entry: AuditRecord) -> dict[str, object]:
    return {
        "record_id": entry.record_id,
        "at": entry.at,
        "event": entry.event,
        "actor": entry.actor,
        "subject": entry.subject,
        "request_id": entry.request_id,
        "details": entry.details,
        "personal": entry.personal,
        "salt": entry.salt,
        "commitment": entry.commitment,
        "mac": entry.mac,
        "place": entry.place,
    }


def add_audit_records(entries: Iterable[AuditRecord]) -> Verb[None]:
    rows = [event_values(entry) for entry in entries]
    for start in range(0, len(rows), INSERT_BATCH):
        yield INSERT_EVENT.bulk(rows[start : start + INSERT_BATCH])


def has_audit_record(entry: AuditRecord) -> Verb[bool]:
    """Whether an earlier run of this verb was committed, by the unique id of its record.

    Call it after a statement that waits for the locks of that run.
    """
    return bool((yield RECORD_EXISTS(record_id=entry.record_id)))


def unsealed_records(limit: int, after: AuditRecord | None = None) -> Verb[Sequence[AuditRecord]]:
    yield READ_BY_INDEX()
    if after is None:
        rows = yield UNSEALED(most=limit)
    else:
        rows = yield UNSEALED_AFTER(at=after.at, record_id=after.record_id, most=limit)
    return [_raw_record_from_row(row) for row in rows]


def chain_end() -> Verb[ChainEnd]:
    row = (yield CHAIN_END())[0]
    fields = row._asdict()
    end = {name: fields.pop(name) for name in ("head", "master_keys", "previous", "first_place", "last_place")}
    return ChainEnd(**end, seal=None if fields["place"] is None else Seal(**fields))


def swap_head(head: HeadSwap) -> Verb[None]:
    """The condition is part of the write: of two sealers the second finds no row left to change."""
    if head.before is None:
        moved = yield from set_value_once(AUDIT_HEAD, head.after)
    else:
        moved = yield from replace_value(AUDIT_HEAD, head.before, head.after)
    if not moved:
        raise SealedMeanwhile


def verified_position() -> Verb[str | None]:
    return (yield from read_value(AUDIT_VERIFIED))


def swap_verified_position(before: str | None, after: str) -> Verb[bool]:
    if before is None:
        return (yield from set_value_once(AUDIT_VERIFIED, after))
    return (yield from replace_value(AUDIT_VERIFIED, before, after))


def clear_breaks(head: HeadSwap, entry: AuditRecord) -> Verb[None]:
    yield from swap_head(head)
    yield from add_audit_record(entry)


def create_head(key: tuple[str, str | None, str], head: str) -> Verb[bool]:
    """Store the head together with the fact that it exists, which is passed as name, value read and new value."""
    name, before, after = key
    is_stored = yield from (set_value_once(name, after) if before is None else replace_value(name, before, after))
    if is_stored:
        yield from set_value_once(AUDIT_HEAD, head)
    return is_stored


def append_to_chain(
    record_ids: Sequence[str], seal: Seal, head: HeadSwap, break_record: AuditRecord | None = None
) -> Verb[bool]:
    if not (yield LOCK_CHAIN())[0].taken:
        return False
    yield from swap_head(head)
    after = seal.place - len(record_ids)
    if break_record is not None:
        yield from add_audit_record(break_record)
    placed = yield PLACE_EVENTS(record_ids=list(record_ids), after=after)
    if len(placed) != len(record_ids):
        raise SealedMeanwhile
    yield INSERT_SEAL(place=seal.place, at=seal.at, link=seal.link, kid=seal.kid, signature=seal.signature)
    yield Notification(CHANNEL, "")
    return True


def add_refusal(refusal: Refusal, max_refusals: int) -> Verb[None]:
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
    yield DROP_OLD_REFUSALS(oldest=rows[0].position - max_refusals)


def find_record(record_id: str) -> Verb[AuditRecord | Refusal | None]:
    rows = yield EVENT_BY_ID(record_id=record_id)
    if rows:
        return _record_from_row(rows[0])
    rows = yield REFUSAL_BY_ID(record_id=record_id)
    return refusal_from_row(rows[0]) if rows else None


def records_from(place: int, limit: int) -> Verb[Sequence[AuditRecord]]:
    rows = yield EVENTS_FROM(first=place, most=limit)
    return [_raw_record_from_row(row) for row in rows]


def seals_from(place: int, limit: int) -> Verb[Sequence[Seal]]:
    rows = yield SEALS_FROM(first=place, most=limit)
    return [_seal_from_row(row) for row in rows]


def newest_records(limit: int, subject: str, event: str) -> Verb[Sequence[AuditRecord]]:
    rows = yield NEWEST_RECORDS(
        most=limit, subject=subject, event=event, any_subject=not subject, any_event=not event
    )
    return [_record_from_row(row) for row in rows]


def erase_personal(subject: str, entry: AuditRecord) -> Verb[int]:
    rows = yield ERASE_PERSONAL(of=subject)
    yield from add_audit_record(entry)
    return len(rows)


def erase_old_sign_ins(until: int) -> Verb[bool]:
    """Erase the personal part of sign-ins up to that time, a few at a time, the oldest first; True if some are left.

    How far it came is stored, so that no record is passed twice.
    """
    done = int((yield from read_value(HISTORY_ERASED)) or 0)
    if until <= done:
        return False
    rows = yield NTH_RECORD_AFTER(after=done)
    end = min(until, rows[0].at) if rows else until
    yield ERASE_SIGN_INS(after=done, until=end)
    yield from set_value(HISTORY_ERASED, str(end))
    return end < until


def seal_to_delete(begins: int, at: int) -> Verb[tuple[Seal, int] | None]:
    """Return the oldest records to delete, up to a seal, so that the remaining log begins after one.

    As few as possible at a time.
    """
    last = (yield LAST_SEAL_WITHIN(oldest=begins, at=at, end=begins + DELETE_BATCH))[0].place
    if last is None:
        rows = yield NEXT_SEAL(oldest=begins)
        if not rows:
            return None
        last = rows[0].place
    seal = _seal_from_row((yield SEAL_AT(place=last))[0])
    return None if seal.at >= at else (seal, (yield SEAL_BEFORE(place=last))[0].place)


def delete_up_to(place: int, head: HeadSwap) -> Verb[int]:
    yield from swap_head(head)
    return len((yield DROP_RECORDS_UP_TO(last=place)))


class AuditStorage(SqlStore):
    unsealed_records = snapshot_read(unsealed_records)
    chain_end = read(chain_end)
    append_to_chain = write(append_to_chain)
    verified_position = read(verified_position)
    swap_verified_position = write(swap_verified_position)
    swap_head = write(swap_head)
    clear_breaks = write(clear_breaks)
    create_head = write(create_head)
    add_refusal = write(add_refusal)
    find_record = read(find_record)
    records_from = snapshot_read(records_from)
    seals_from = snapshot_read(seals_from)
    newest_records = snapshot_read(newest_records)
    erase_personal = write(erase_personal)
    erase_old_sign_ins = write(erase_old_sign_ins)
    seal_to_delete = read(seal_to_delete)
    delete_up_to = write(delete_up_to)

    def listen_for_seals(self, listener: Callable[[str], object]) -> Callable[[], None]:
        """Call the listener after every sealing, by any node, and when notices may have been missed."""
        return self.runner.listen(CHANNEL, listener)


def _record_from_row(row: Row) -> AuditRecord:
    return AuditRecord(**row._asdict())


def _raw_record_from_row(row: Row) -> AuditRecord:
    return AuditRecord(
        **{**row._asdict(), "details": _decode_raw(row.details), "personal": _decode_raw(row.personal)}
    )


def _decode_raw(text: str | None) -> Any:  # noqa: ANN401 - a document
    try:
        return None if text is None else msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {"unreadable": text}  # the service never writes such a record: its authentication code does not match


def _seal_from_row(row: Row) -> Seal:
    return Seal(**row._asdict())


def refusal_from_row(row: Row) -> Refusal:
    fields = row._asdict()
    del fields["position"]
    return Refusal(**fields)


# Part of the twins that do everything in one statement on PostgreSQL (docs/decisions/0003-verbs-written-once.md).


ENTRY_PREFIX: Final = "entry_"  # before the names of the record's columns


def insert_if(there: CTE, table: Table, prefix: str = "") -> ReturningInsert[Any]:
    """Insert the parameters as a row of the table, if the source has a row."""
    values: list[ColumnElement[Any]] = [bindparam(f"{prefix}{column.name}", type_=column.type) for column in table.c]
    made = insert(table).from_select(list(table.c), select(*values).select_from(there), include_defaults=False)
    return made.returning(*table.primary_key)


def insert_audit_record_if(there: CTE) -> ReturningInsert[Any]:
    """Insert an audit record, if the source has a row."""
    return insert_if(there, audit_events, ENTRY_PREFIX)


def audit_record_parameters(entry: AuditRecord) -> dict[str, object]:
    return with_prefix(ENTRY_PREFIX, column_values(entry))


def with_prefix(prefix: str, row: Mapping[str, object]) -> dict[str, object]:
    return {f"{prefix}{name}": value for name, value in row.items()}
