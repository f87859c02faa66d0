"""Stores objects and what is held on them (ObjectStore).

Lock order: the structure, the schema of the application, the objects of the application. What moves or deletes
objects holds the last lock alone, so paths stay as they are for everyone else until the commit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Integer, Select, Text, bindparam, cast, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import UserNotFound
from gatehouse.kernel.errors import Conflict
from gatehouse.permissions.errors import ApplicationNotFound, GroupNotFound
from gatehouse.permissions.model.objects import (
    MAX_DEPTH,
    MAX_ON_OBJECT,
    MAX_SUBTREE,
    MAX_SUBTREE_HOLDERS,
    SEPARATOR,
    Holder,
    HolderKind,
    ObjectHolding,
    StoredObject,
    depth_of,
    place_of,
    subtree_end,
)
from gatehouse.permissions.model.schema import ObjectType, stored_object_types
from gatehouse.permissions.objects.store import (
    ChangeHolders,
    ChangeObjects,
    CheckDeletion,
    HolderChange,
    HolderEdit,
    HolderPage,
    ObjectDeletion,
    ObjectPage,
    RoleState,
)
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.objects.ranges import allowed_page, first_object
from gatehouse.storage.objects.reading import HOLDING_COLUMNS, holding_from
from gatehouse.storage.permissions.groups import LOCK_USERS_SHARED
from gatehouse.storage.permissions.structure import LOCK_SCHEMA_SHARED, lock_structure_shared
from gatehouse.storage.runner import SqlStore, heavy_write, read, snapshot_read
from gatehouse.storage.statements import (
    DialectFunction,
    InStringList,
    JsonDocument,
    JsonItems,
    Row,
    Statement,
    Verb,
    json_text,
)
from gatehouse.storage.tables.objects import object_holders, objects
from gatehouse.storage.tables.permissions import application_schemas, roles
from gatehouse.storage.tables.projects import groups

OBJECT_LOCKS: Final = 0x6F62_6A65_0000_0000  # with the number of the application: lock of its objects


class SubtreeTooLarge(Conflict):
    public = f"More than {MAX_SUBTREE:,} objects, or {MAX_SUBTREE_HOLDERS:,} roles and entries on them, would change."


class ObjectTooDeep(Conflict):
    public = f"Objects can be at most {MAX_DEPTH} levels deep."


class ObjectHasChildren(Conflict):
    public = "There are objects below it. Delete them first, or delete with recursive."


class LockAlone(DialectFunction[int]):
    """A lock of the transaction with this number. SQLite needs none: it has one writer at a time."""

    inherit_cache = True
    type = Integer()
    on_postgres = "CAST(pg_advisory_xact_lock({0}) AS text)"
    on_sqlite = "{0}"


class LockShared(LockAlone):
    inherit_cache = True
    on_postgres = "CAST(pg_advisory_xact_lock_shared({0}) AS text)"


LOCK_OBJECTS = Statement(lambda: select(LockAlone(bindparam("lock_id", type_=BigInteger())).label("held")))
LOCK_OBJECTS_SHARED = Statement(lambda: select(LockShared(bindparam("lock_id", type_=BigInteger())).label("held")))
_OBJECT_COLUMNS: Final = (objects.c.object_key, objects.c.path, objects.c.title, objects.c.version)
_OF_APPLICATION: Final = objects.c.application_id == bindparam("application")
_HOLDERS_OF_APPLICATION: Final = object_holders.c.application_id == bindparam("application")
OBJECTS = Statement(
    lambda: select(*_OBJECT_COLUMNS).where(_OF_APPLICATION, InStringList(objects.c.object_key, "keys"))
)
INSERT_OBJECTS = Statement(lambda: insert(objects))
SAVE_OBJECT = Statement(
    lambda: (
        update(objects)
        .where(_OF_APPLICATION, objects.c.object_key == bindparam("key"))
        .values(title=bindparam("title"), version=objects.c.version + 1)
    )
)


def _path_range(path: ColumnElement[str]) -> tuple[ColumnElement[bool], ...]:
    return path >= bindparam("begin"), path < bindparam("end")


_SUBTREE: Final = (_OF_APPLICATION, InStringList(objects.c.object_type, "types"), *_path_range(objects.c.path))
_HOLDERS_IN_SUBTREE: Final = (_HOLDERS_OF_APPLICATION, *_path_range(object_holders.c.path))


def _count_bounded(paths: Select[tuple[str]], most: int) -> Select[tuple[int, int]]:
    """Count at most one more than may change, with the depth of the deepest."""
    found = paths.limit(most + 1).subquery()
    depth = func.length(found.c.path) - func.length(func.replace(found.c.path, SEPARATOR, ""))
    return select(func.count().label("number"), func.coalesce(func.max(depth), 0).label("depth")).select_from(found)


COUNT_SUBTREE = Statement(lambda: _count_bounded(select(objects.c.path).where(*_SUBTREE), MAX_SUBTREE))
COUNT_HOLDERS = Statement(
    lambda: _count_bounded(select(object_holders.c.path).where(*_HOLDERS_IN_SUBTREE), MAX_SUBTREE_HOLDERS)
)


def _moved_path(path: ColumnElement[str]) -> ColumnElement[str]:
    tail: ColumnElement[str] = func.substr(path, cast(bindparam("tail", type_=Integer()), Integer))
    return cast(bindparam("target", type_=Text()), Text()) + tail


MOVE_SUBTREE = Statement(lambda: update(objects).where(*_SUBTREE).values(path=_moved_path(objects.c.path)))
MOVE_HOLDERS = Statement(
    lambda: update(object_holders).where(*_HOLDERS_IN_SUBTREE).values(path=_moved_path(object_holders.c.path))
)
DROP_SUBTREE = Statement(lambda: delete(objects).where(*_SUBTREE))
DROP_HOLDERS_IN = Statement(lambda: delete(object_holders).where(*_HOLDERS_IN_SUBTREE))
OBJECT_TYPES = Statement(
    lambda: select(application_schemas.c.objects).where(
        application_schemas.c.application_id == bindparam("application")
    )
)
_PAIRS: Final = JsonItems(bindparam("pairs", type_=JsonDocument())).table_valued("value", name="pairs")
HELD_BY = Statement(
    lambda: select(*HOLDING_COLUMNS).where(
        _HOLDERS_OF_APPLICATION,
        object_holders.c.path == json_text(_PAIRS.c.value, 0),
        object_holders.c.holder == json_text(_PAIRS.c.value, 1),
    )
)
DROP_HELD = Statement(
    lambda: delete(object_holders).where(
        _HOLDERS_OF_APPLICATION,
        object_holders.c.path == bindparam("of"),
        object_holders.c.holder == bindparam("by"),
        object_holders.c.item == bindparam("what"),
    )
)


def _put_holding() -> Any:  # noqa: ANN401
    statement = insert(object_holders)
    written = {name: statement.excluded[name] for name in ("value", "expired", "generation")}
    return statement.on_conflict_do_update(index_elements=["application_id", "path", "holder", "item"], set_=written)


PUT_HELD = Statement(_put_holding)
ROLE_STATES = Statement(
    lambda: select(roles.c.role_key, roles.c.name, roles.c.protected, roles.c.user_limit, roles.c.generation).where(
        roles.c.application_id == bindparam("application")
    )
)
GROUPS_BY_ID = Statement(
    lambda: (
        select(groups.c.group_id, groups.c.project_id)
        .where(InStringList(groups.c.group_id, "ids"))
        .order_by(groups.c.group_id)
        .with_for_update(read=True, key_share=True)
    )
)
LIST_OBJECTS = Statement(
    lambda: (
        select(*_OBJECT_COLUMNS)
        .where(*_SUBTREE, objects.c.path > bindparam("after"))
        .order_by(objects.c.path)
        .limit(bindparam("most", type_=BigInteger()))
    )
)
HOLDERS_OF = Statement(
    lambda: (
        select(*HOLDING_COLUMNS)
        .where(
            _HOLDERS_OF_APPLICATION,
            object_holders.c.path == bindparam("of"),
            object_holders.c.holder > bindparam("after"),
        )
        .order_by(object_holders.c.holder, object_holders.c.item)
        .limit(bindparam("most", type_=BigInteger()))
    )
)
DROP_HOLDER = Statement(lambda: delete(object_holders).where(object_holders.c.holder == bindparam("by")))


def begin_objects_change(application_id: int, *, alone: bool) -> Verb[None]:
    """Take the locks; first in every verb that changes objects or what is held on them."""
    yield from lock_structure_shared()
    if not (yield LOCK_SCHEMA_SHARED(application=application_id)):
        raise ApplicationNotFound
    lock = LOCK_OBJECTS if alone else LOCK_OBJECTS_SHARED
    yield lock(lock_id=OBJECT_LOCKS + application_id % 2**32)


def stored_objects(application_id: int, keys: Sequence[str]) -> Verb[Mapping[str, StoredObject]]:
    rows = (yield OBJECTS(application=application_id, keys=list(keys))) if keys else ()
    return {row.object_key: _object_from_row(row) for row in rows}


def save_objects(application_id: int, keys: Sequence[str], change: ChangeObjects) -> Verb[Sequence[StoredObject]]:
    yield from begin_objects_change(application_id, alone=True)
    object_types = yield from _object_types(application_id)
    edit = change((yield from stored_objects(application_id, keys)), object_types)
    types = sorted(object_types)
    new: list[StoredObject] = []
    for step in edit.steps:
        if step.before is None:
            new.append(step.after)
            continue
        if step.before.path != step.after.path:
            yield from _insert_objects(application_id, new)
            new = []
            yield from _move(application_id, types, step.before.path, step.after.path)
        yield SAVE_OBJECT(application=application_id, key=step.after.key, title=step.after.title)
    yield from _insert_objects(application_id, new)
    yield from add_audit_record(edit.record)
    return [step.after for step in edit.steps]


def delete_objects(
    application_id: int, keys: Sequence[str], check: CheckDeletion, *, recursive: bool
) -> Verb[ObjectDeletion]:
    yield from begin_objects_change(application_id, alone=True)
    make_record = check((yield from stored_objects(application_id, keys)))
    types = sorted((yield from _object_types(application_id)))
    deleted, taken = 0, 0
    for key in keys:
        there = yield from stored_objects(application_id, [key])  # none: it went with an object above it
        for each in there.values():
            number, holders = yield from _count_subtree(application_id, types, each.path)
            if number > 1 and not recursive:
                raise ObjectHasChildren
            deleted, taken = deleted + number, taken + holders
            if deleted > MAX_SUBTREE or taken > MAX_SUBTREE_HOLDERS:
                raise SubtreeTooLarge
            yield DROP_HOLDERS_IN(application=application_id, **_range_of(each.path))
            yield DROP_SUBTREE(application=application_id, types=types, **_range_of(each.path))
    deletion = ObjectDeletion(objects=deleted, holders=taken)
    yield from add_audit_record(make_record(deletion))
    return deletion


def save_holders(
    application_id: int, keys: Sequence[str], holders: Sequence[tuple[str, Holder]], change: ChangeHolders
) -> Verb[HolderEdit]:
    yield from begin_objects_change(application_id, alone=False)
    there = yield from stored_objects(application_id, keys)
    before = yield from _held_by(application_id, there, holders)
    states = {row.role_key: _role_state(row) for row in (yield ROLE_STATES(application=application_id))}
    edit = change(there, before, states, (yield from _object_types(application_id)))
    yield from _refuse_unknown_holders(edit.rows)
    dropped: list[dict[str, object]] = []
    put: list[dict[str, object]] = []
    for row in edit.rows:
        held = before.get((row.path, row.holder.key), ())
        left = {holding.item for holding in row.holdings}
        dropped += [
            {"application": application_id, "of": row.path, "by": row.holder.key, "what": holding.item.key}
            for holding in held
            if holding.item not in left
        ]
        put += [_holding_columns(application_id, row, each) for each in row.holdings if each not in held]
    if dropped:
        yield DROP_HELD.bulk(dropped)
    if put:
        yield PUT_HELD.bulk(put)
    yield from add_audit_record(edit.record)
    return edit


def drop_holder(holder: Holder) -> Verb[None]:
    """Delete all that a person or group holds on objects, of all applications."""
    yield DROP_HOLDER(by=holder.key)


def list_objects(
    application_id: int, types: Sequence[str], *, begin: str, end: str, after: str, limit: int
) -> Verb[ObjectPage]:
    rows = yield LIST_OBJECTS(
        application=application_id, types=list(types), begin=begin, end=end, after=after, most=limit + 1
    )
    found = [_object_from_row(row) for row in rows[:limit]]
    return ObjectPage(objects=found, after=found[-1].path if len(rows) > limit else None)


def holders_of(application_id: int, path: str, *, after: str, limit: int) -> Verb[HolderPage]:
    """A page is cut between holders; none has more rows than a page is longer."""
    rows = yield HOLDERS_OF(application=application_id, of=path, after=after, most=limit + MAX_ON_OBJECT)
    is_last = len(rows) < limit + MAX_ON_OBJECT
    complete = [row for row in rows if is_last or row.holder != rows[-1].holder]
    return HolderPage(
        holdings=[holding_from(row[1:]) for row in complete], after=None if is_last else complete[-1].holder
    )


def _object_types(application_id: int) -> Verb[Mapping[str, ObjectType]]:
    (row,) = yield OBJECT_TYPES(application=application_id)
    return stored_object_types(row.objects)


def _insert_objects(application_id: int, new: Sequence[StoredObject]) -> Verb[None]:
    if new:
        yield INSERT_OBJECTS.bulk(
            [
                {
                    "application_id": application_id,
                    "object_key": each.key,
                    "object_type": each.type,
                    "path": each.path,
                    "title": each.title,
                    "version": each.version,
                }
                for each in new
            ]
        )


def _move(application_id: int, types: Sequence[str], old: str, new: str) -> Verb[None]:
    number, holders = yield from _count_subtree(application_id, types, old, deeper=depth_of(new) - depth_of(old))
    if number > MAX_SUBTREE or holders > MAX_SUBTREE_HOLDERS:
        raise SubtreeTooLarge
    target = {"target": new, "tail": len(old) + 1}  # counted from 1: the first character behind the old path
    yield MOVE_HOLDERS(application=application_id, **_range_of(old), **target)
    yield MOVE_SUBTREE(application=application_id, types=types, **_range_of(old), **target)


def _count_subtree(application_id: int, types: Sequence[str], path: str, *, deeper: int = 0) -> Verb[tuple[int, int]]:
    (found,) = yield COUNT_SUBTREE(application=application_id, types=types, **_range_of(path))
    if found.depth + deeper > MAX_DEPTH:
        raise ObjectTooDeep
    (held,) = yield COUNT_HOLDERS(application=application_id, **_range_of(path))
    return found.number, held.number


def _range_of(path: str) -> dict[str, object]:
    return {"begin": path, "end": subtree_end(path)}


def _held_by(
    application_id: int, there: Mapping[str, StoredObject], holders: Sequence[tuple[str, Holder]]
) -> Verb[Mapping[tuple[str, str], Sequence[ObjectHolding]]]:
    """Read what each holder has on its object, by path and holder."""
    pairs = [[there[key].path, holder.key] for key, holder in holders if key in there]
    rows = (yield HELD_BY(application=application_id, pairs=pairs)) if pairs else ()
    held: dict[tuple[str, str], list[ObjectHolding]] = {}
    for row in rows:
        held.setdefault((row.path, row.holder), []).append(holding_from(row[1:]))
    return held


def _refuse_unknown_holders(rows: Sequence[HolderChange]) -> Verb[None]:
    given = [row for row in rows if row.holdings]
    people = sorted({row.holder.id for row in given if row.holder.kind is HolderKind.USER})
    if people and len((yield LOCK_USERS_SHARED(ids=people))) < len(people):
        raise UserNotFound
    group_ids = sorted({row.holder.id for row in given if row.holder.kind is HolderKind.GROUP})
    if not group_ids:
        return
    homes = {row.group_id: row.project_id for row in (yield GROUPS_BY_ID(ids=group_ids))}
    for row in given:
        if row.holder.kind is HolderKind.GROUP and homes.get(row.holder.id) != place_of(row.path):
            raise GroupNotFound


def _object_from_row(row: Row) -> StoredObject:
    return StoredObject(key=row.object_key, path=row.path, title=row.title, version=row.version)


def _role_state(row: Row) -> RoleState:
    return RoleState(name=row.name, protected=row.protected, user_limit=row.user_limit, generation=row.generation)


def _holding_columns(application_id: int, row: HolderChange, holding: ObjectHolding) -> dict[str, object]:
    return {
        "application_id": application_id,
        "path": row.path,
        "holder": row.holder.key,
        "item": holding.item.key,
        "value": holding.value,
        "expired": holding.end.expired,
        "generation": holding.generation,
    }


class ObjectStorage(SqlStore):
    objects = read(stored_objects)
    save_objects = heavy_write(save_objects)
    delete_objects = heavy_write(delete_objects)
    save_holders = heavy_write(save_holders)
    list_objects = read(list_objects)
    holders_of = read(holders_of)
    first_object = read(first_object)
    allowed_page = snapshot_read(allowed_page)
