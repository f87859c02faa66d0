"""Read the objects on which a person has a rule, a bounded number of rows for each page, from one snapshot."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, bindparam, select

from gatehouse.permissions.model.object_ranges import PathRange, position_after, scopes_around
from gatehouse.permissions.model.objects import MAX_ON_OBJECT, ObjectHolding, StoredObject
from gatehouse.permissions.objects.store import AllowedQuery, ObjectPage
from gatehouse.storage.objects.reading import HOLDING_COLUMNS, holding_from
from gatehouse.storage.permissions.facts import facts
from gatehouse.storage.statements import InStringList, JsonDocument, JsonItems, RowsAsJson, Statement, Verb, json_text
from gatehouse.storage.tables.objects import object_holders, objects

ROWS_READ: Final = 1_000  # rows of holders that a page reads, shared by the person and their groups
LEAST_ROWS: Final = 2 * MAX_ON_OBJECT  # of each: more than one object can have, so that each page goes on
RANGES_AT_ONCE: Final = 100
OBJECTS_OF_A_RANGE: Final = 20  # while several ranges are read at once
MAX_READS: Final = 20  # statements of one page


def _items(name: str) -> Any:  # noqa: ANN401 - a table of one statement
    return JsonItems(bindparam(name, type_=JsonDocument())).table_valued("value", name=name)


def _rows_of(rows: Select[Any]) -> ColumnElement[Any]:
    """Rows of a correlated query as one document, so that each of several ranges has its own limit."""
    each = rows.subquery()
    return select(RowsAsJson(*each.c)).scalar_subquery()


def _held_from() -> Select[Any]:
    holders = _items("holders")
    rows = (
        select(*HOLDING_COLUMNS)
        .where(
            object_holders.c.holder == json_text(holders.c.value, 0),
            object_holders.c.application_id == bindparam("application"),
            object_holders.c.path >= bindparam("begin"),
            object_holders.c.path < bindparam("end"),
        )
        .order_by(object_holders.c.path)
        .limit(bindparam("most", type_=BigInteger()))
        .correlate(holders)
    )
    return select(_rows_of(rows).label("held")).select_from(holders)


def _objects_in() -> Select[Any]:
    ranges = _items("ranges")
    rows = (
        select(objects.c.object_key, objects.c.path, objects.c.title, objects.c.version)
        .where(
            objects.c.application_id == bindparam("application"),
            objects.c.object_type == bindparam("type"),
            objects.c.path >= json_text(ranges.c.value, 0),
            objects.c.path < json_text(ranges.c.value, 1),
        )
        .order_by(objects.c.path)
        .limit(bindparam("most", type_=BigInteger()))
        .correlate(ranges)
    )
    return select(json_text(ranges.c.value, 0).label("begin"), _rows_of(rows).label("found")).select_from(ranges)


HELD_FROM = Statement(_held_from)
HELD_AT = Statement(
    lambda: select(*HOLDING_COLUMNS).where(
        object_holders.c.application_id == bindparam("application"),
        InStringList(object_holders.c.path, "paths"),
        InStringList(object_holders.c.holder, "holders"),
    )
)
OBJECTS_IN = Statement(_objects_in)
FIRST_OBJECT = Statement(
    lambda: (
        select(objects.c.object_key, objects.c.path, objects.c.title, objects.c.version)
        .where(
            objects.c.application_id == bindparam("application"),
            objects.c.object_type == bindparam("type"),
            objects.c.path >= bindparam("begin"),
            objects.c.path < bindparam("end"),
        )
        .order_by(objects.c.path)
        .limit(1)
    )
)


def first_object(application_id: int, object_type: str, within: PathRange) -> Verb[StoredObject | None]:
    rows = yield FIRST_OBJECT(application=application_id, type=object_type, begin=within.begin, end=within.end)
    return object_from_cells(rows[0]) if rows else None


def allowed_page(query: AllowedQuery) -> Verb[ObjectPage | None]:
    """Read a page; None when the facts of the person are no longer those of the query."""
    who = query.facts.subject.user_id
    now = yield from facts(who, tuple(sorted(query.facts.records)), tuple(sorted(query.project_ids)))
    if now != query.facts:
        return None
    held, until = yield from _read_held(query)
    ranges = query.find_ranges(held, PathRange(query.within.begin, until))
    found, after = yield from _objects(query, ranges)
    if after is None and until < query.within.end:
        after = until
    return ObjectPage(objects=found, after=after)


def _read_held(query: AllowedQuery) -> Verb[tuple[Mapping[str, Sequence[ObjectHolding]], str]]:
    """What the holders have on the objects around the position, and behind it up to the path that is returned."""
    held: defaultdict[str, list[ObjectHolding]] = defaultdict(list)
    around = sorted(scopes_around(query.within.begin))
    if around:
        keys = [holder.key for holder in query.holders]
        for row in (yield HELD_AT(application=query.application_id, paths=around, holders=keys)):
            held[row.path].append(holding_from(row[1:]))
    most = max(LEAST_ROWS, ROWS_READ // len(query.holders))
    rows = yield HELD_FROM(
        application=query.application_id,
        holders=[[holder.key] for holder in query.holders],
        begin=query.within.begin,
        end=query.within.end,
        most=most,
    )
    until = query.within.end
    for row in rows:
        cells = sorted(row.held or ())
        if len(cells) >= most:
            until = min(until, cells[-1][0])  # there may be more on this object
        for each in cells:
            held[each[0]].append(holding_from(each[1:]))
    around_position = frozenset(around)
    return {path: each for path, each in held.items() if path < until or path in around_position}, until


def _objects(query: AllowedQuery, ranges: Sequence[PathRange]) -> Verb[tuple[Sequence[StoredObject], str | None]]:
    """Read objects in the ranges, and the position at which the next page begins; None if these are all."""
    found: list[StoredObject] = []
    waiting = list(ranges)
    at_once = RANGES_AT_ONCE
    for _ in range(MAX_READS):
        if not waiting:
            return found, None
        left = query.limit - len(found)
        batch = waiting[: min(at_once, left)]
        most = left if len(batch) == 1 else min(left, OBJECTS_OF_A_RANGE)
        rows = yield OBJECTS_IN(
            application=query.application_id,
            type=query.type,
            ranges=[[each.begin, each.end] for each in batch],
            most=most,
        )
        by_begin = {row.begin: sorted(row.found or (), key=lambda cells: cells[1]) for row in rows}
        waiting, at_once = waiting[len(batch) :], RANGES_AT_ONCE
        for index, each in enumerate(batch):
            cells = by_begin.get(each.begin, [])[:left]
            found += map(object_from_cells, cells)
            left -= len(cells)
            if left == 0:
                return found, position_after(found[-1].path)
            if len(cells) == most:  # there may be more in this range
                rest = PathRange(position_after(found[-1].path), each.end)
                waiting, at_once = [rest, *batch[index + 1 :], *waiting], 1
                break
    return found, waiting[0].begin if waiting else None


def object_from_cells(cells: Sequence[Any]) -> StoredObject:
    key, path, title, version = cells
    return StoredObject(key=key, path=path, title=title, version=version)
