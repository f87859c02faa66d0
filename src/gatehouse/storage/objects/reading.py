"""Read objects with their ancestors, and what a person and groups hold on them, as part of one statement.

Ancestors are found from the path of an object, so one statement reads them whatever the depth.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Text, bindparam, func, literal_column, select, union_all

from gatehouse.kernel.errors import Conflict
from gatehouse.permissions.model.objects import (
    SEPARATOR,
    HeldItem,
    Holder,
    HolderKind,
    ItemKind,
    ObjectFacts,
    ObjectHolding,
)
from gatehouse.permissions.model.rules import End
from gatehouse.storage.permissions.grant_keys import InSelect
from gatehouse.storage.statements import InStringList, OrdinaryCollation, Row, RowsAsJson, Statement, Verb
from gatehouse.storage.tables.objects import object_holders, objects

GROUPS_FROM: Final = f"{HolderKind.GROUP}:"
GROUPS_UNTIL: Final = f"{HolderKind.GROUP};"
HOLDING_COLUMNS: Final = tuple(
    object_holders.c[name] for name in ("path", "holder", "item", "value", "expired", "generation")
)
ASKED_OBJECTS: Final = (
    objects.c.application_id == bindparam("objects_of"),
    InStringList(objects.c.object_key, "object_keys"),
)


def _text(value: str) -> ColumnElement[str]:
    return literal_column(f"'{value}'", Text())


def above(path: ColumnElement[str]) -> ColumnElement[str]:
    """The path of the parent, or the place: everything before the last separator, written alike on both databases."""
    return func.rtrim(func.rtrim(path, func.replace(path, _text(SEPARATOR), _text(""))), _text(SEPARATOR))


class ObjectTypeInUse(Conflict):
    public = "The object type has objects. Delete them first."


# The place is what stands before the first separator of the path.
_PLACE_CHARACTERS: Final = _text("abcdefghijklmnopqrstuvwxyz0123456789_")  # of project IDs
PLACE_OF_OBJECT: Final = OrdinaryCollation(
    func.substr(
        objects.c.path, 1, func.length(objects.c.path) - func.length(func.ltrim(objects.c.path, _PLACE_CHARACTERS))
    )
)
TYPES_IN_USE = Statement(
    lambda: (
        select(objects.c.object_type)
        .where(objects.c.application_id == bindparam("application"), InStringList(objects.c.object_type, "types"))
        .limit(1)
    )
)


def refuse_types_in_use(application_id: int, types: Collection[str]) -> Verb[None]:
    """Raise ObjectTypeInUse if one of the types has objects; the caller has locked the schema."""
    if types and (yield TYPES_IN_USE(application=application_id, types=sorted(types))):
        raise ObjectTypeInUse


def asked_scopes() -> Select[Any]:
    """Select the paths of the objects asked about and of their ancestors, each once."""
    asked = select(objects.c.path.label("path")).where(*ASKED_OBJECTS)
    scopes = asked.cte("object_scopes", recursive=True)
    return select(scopes.union(select(above(scopes.c.path)).where(scopes.c.path.like(f"%{SEPARATOR}%"))).c.path)


def object_columns(user_id: ColumnElement[str]) -> Sequence[ColumnElement[Any]]:
    """Select the objects asked about, and what the person and any group hold on them and above."""
    found = select(RowsAsJson(objects.c.object_key, objects.c.path)).where(*ASKED_OBJECTS)
    scopes = asked_scopes()
    there = (object_holders.c.application_id == bindparam("objects_of"), InSelect(object_holders.c.path, scopes))
    held = union_all(
        select(*HOLDING_COLUMNS).where(*there, object_holders.c.holder == _text(f"{HolderKind.USER}:") + user_id),
        select(*HOLDING_COLUMNS).where(
            *there, object_holders.c.holder >= _text(GROUPS_FROM), object_holders.c.holder < _text(GROUPS_UNTIL)
        ),
    ).subquery()
    return (
        found.scalar_subquery().label("objects"),
        select(RowsAsJson(*held.c)).scalar_subquery().label("held_on_objects"),
    )


def object_facts_from(row: Row) -> ObjectFacts:
    holdings: defaultdict[str, list[ObjectHolding]] = defaultdict(list)
    for cells in row.held_on_objects or ():
        holdings[cells[0]].append(holding_from(cells[1:]))
    return ObjectFacts(
        paths=dict(row.objects or ()),
        holdings={path: tuple(sorted(held, key=holding_order)) for path, held in holdings.items()},
    )


def holding_from(cells: Sequence[Any]) -> ObjectHolding:
    """Read the cells of a row from `holder` on."""
    holder, item, value, expired, generation = cells
    return ObjectHolding(
        holder=holder_from(holder),
        item=HeldItem(ItemKind(item[0]), item[2:]),
        value=bool(value),
        end=End(expired=expired),
        generation=generation,
    )


def holder_from(key: str) -> Holder:
    return Holder(HolderKind(key[0]), key[2:])


def holding_order(holding: ObjectHolding) -> tuple[str, str]:
    return holding.holder.key, holding.item.key


def group_by_path(rows: Sequence[Row]) -> Mapping[str, Sequence[ObjectHolding]]:
    found: defaultdict[str, list[ObjectHolding]] = defaultdict(list)
    for row in rows:
        found[row.path].append(holding_from((row.holder, row.item, row.value, row.expired, row.generation)))
    return found
