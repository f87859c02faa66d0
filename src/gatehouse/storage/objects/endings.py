"""Ends what is held on objects when a person, a group, an application or a project ends; part of their verbs."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Text, bindparam, case, cast, delete, exists, literal_column, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.own_account.model import HeldOnObject
from gatehouse.permissions.model.objects import AFTER_SEPARATOR, SEPARATOR, Holder, HolderKind
from gatehouse.storage.statements import InNumberList, Statement, Verb
from gatehouse.storage.tables.objects import object_holders, objects

MAX_EXPORTED: Final = 10_000  # roles and permissions on objects in an export
DROP_HOLDER = Statement(lambda: delete(object_holders).where(object_holders.c.holder == bindparam("holder")))
DROP_OF_APPLICATIONS = Statement.for_each(
    (object_holders, objects), lambda table: delete(table).where(InNumberList(table.c.application_id, "applications"))
)
DROP_IN_PLACE = Statement.for_each(
    (object_holders, objects),
    lambda table: delete(table).where(table.c.path >= bindparam("begin"), table.c.path < bindparam("end")),
)


def _unite_holders() -> Any:  # noqa: ANN401
    """The account that stays keeps what it has; a restriction beats a right."""
    columns = ("application_id", "path", "holder", "item", "value", "expired", "generation")
    moved = select(
        *(
            cast(bindparam("into", type_=Text()), Text()).label(name) if name == "holder" else object_holders.c[name]
            for name in columns
        )
    ).where(object_holders.c.holder == bindparam("holder"))
    statement = insert(object_holders).from_select(list(columns), moved)
    is_denial = statement.excluded.value.is_(False) & object_holders.c.value.is_(True)
    written = {
        name: case((is_denial, statement.excluded[name]), else_=object_holders.c[name])
        for name in ("value", "expired", "generation")
    }
    return statement.on_conflict_do_update(index_elements=["application_id", "path", "holder", "item"], set_=written)


UNITE_HOLDERS = Statement(_unite_holders)


def is_held_by(user_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether the person holds anything on an object, as part of another statement."""
    return exists().where(object_holders.c.holder == literal_column(f"'{HolderKind.USER}:'", Text()) + user_id)


HELD_ON_OBJECTS = Statement(
    lambda: (
        select(*(object_holders.c[name] for name in ("application_id", "path", "item", "value", "expired")))
        .where(object_holders.c.holder == bindparam("holder"))
        .order_by(object_holders.c.application_id, object_holders.c.path)
        .limit(MAX_EXPORTED)
    )
)


def held_on_objects(user_id: str) -> Verb[Sequence[HeldOnObject]]:
    """What a person holds on objects, for their export."""
    return [
        HeldOnObject(
            application_id=row.application_id,
            object_key=row.path.rpartition(SEPARATOR)[2],
            item=row.item.partition(":")[2],
            value=row.value,
            ends_at=row.expired,
        )
        for row in (yield HELD_ON_OBJECTS(holder=Holder(HolderKind.USER, user_id).key))
    ]


def drop_holder(holder: Holder) -> Verb[None]:
    """Delete all that a person or group holds on objects."""
    yield DROP_HOLDER(holder=holder.key)


def unite_holders(ending: Holder, staying: Holder) -> Verb[None]:
    """Give what one person holds on objects to another."""
    yield UNITE_HOLDERS(holder=ending.key, into=staying.key)
    yield DROP_HOLDER(holder=ending.key)


def drop_objects_of(application_ids: Sequence[int]) -> Verb[None]:
    for drop in DROP_OF_APPLICATIONS:
        yield drop(applications=list(application_ids))


def drop_objects_in(project_id: str) -> Verb[None]:
    """Delete the objects in a project, of whatever application."""
    for drop in DROP_IN_PLACE:
        yield drop(begin=f"{project_id}{SEPARATOR}", end=f"{project_id}{AFTER_SEPARATOR}")
