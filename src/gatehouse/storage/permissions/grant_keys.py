"""Finds the projects that may grant a person something, by index: of ten thousand only these are read (R5).

Each row says: in this project, people with this key may be granted roles of this application. The keys are those of
permissions/model/index_keys.py. They are written in the transaction that changes a group's conditions or a
project's grants, under the lock of the project.
"""

from collections.abc import Collection, Iterator
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Select,
    Text,
    bindparam,
    cast,
    delete,
    exists,
    literal_column,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import Boolean

from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.index_keys import ANYONE, IndexKey, group_index_keys, key_text
from gatehouse.storage.permissions.project_models import projects_by_id
from gatehouse.storage.statements import DialectFunction, InNumberList, RowsAsJson, Statement, Verb
from gatehouse.storage.tables.accounts import passkeys, totp_factors, user_purchases, user_tags, users
from gatehouse.storage.tables.permissions import applications
from gatehouse.storage.tables.projects import grant_keys, group_members, project_services, projects

GrantKey: TypeAlias = tuple[int, str]  # application, key

_STORED = grant_keys.c.project_id == bindparam("of")
READ_KEYS = Statement(
    lambda: select(RowsAsJson(grant_keys.c.application_id, grant_keys.c.index_key).label("keys")).where(_STORED)
)
DROP_KEY = Statement(lambda: delete(grant_keys).where(grant_keys.c.index_key == bindparam("key"), _STORED))
INSERT_KEY = Statement(lambda: insert(grant_keys).on_conflict_do_nothing())
GRANTED_TO = Statement(  # the applications whose roles the project gives to the group or takes from it
    lambda: (
        select(project_services.c.application_id)
        .distinct()
        .where(
            project_services.c.project_id == bindparam("project"), project_services.c.group_id == bindparam("group")
        )
    )
)


class InSelect(ColumnElement[bool]):
    """`column` is one of the values of a query.

    PostgreSQL reads them first, into an array: so an index is used, whatever the statistics say of the query.
    """

    inherit_cache = False
    type = Boolean()
    _is_implicitly_boolean = True

    def __init__(self, column: ColumnElement[str], values: Select[Any] | CompoundSelect[Any]) -> None:
        self.column = column
        self.values = values.scalar_subquery()


@compiles(InSelect, "postgresql")
def _select_on_postgres(element: InSelect, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
    return f"{compiler.process(element.column, **kw)} = ANY(ARRAY{compiler.process(element.values, **kw)})"


@compiles(InSelect, "sqlite")
def _select_on_sqlite(element: InSelect, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
    return f"{compiler.process(element.column, **kw)} IN {compiler.process(element.values, **kw)}"


class DomainOf(DialectFunction[str]):
    """The part after the only `@` of a login key."""

    inherit_cache = True
    type = Text()
    on_postgres = "split_part({0}, '@', 2)"
    on_sqlite = "substr({0}, instr({0}, '@') + 1)"


def stored_key(application_id: int, key: IndexKey) -> str:
    return f"{application_id}:{key_text(key)}"


def grant_keys_of(model: ProjectModel) -> set[GrantKey]:
    """Return the keys with which the project may grant a person something, by application."""
    return {
        (application_id, stored_key(application_id, key))
        for application_id, grants in model.project.settings.services.items()
        for group_id in {grant.group_id for grant in grants} & model.groups.keys()
        for key in group_index_keys(model.groups[group_id])
    }


def update_grant_keys(project_ids: Collection[str]) -> Verb[None]:
    """Make the keys of these projects what their groups and grants say; part of verbs that have locked them."""
    models = (yield from projects_by_id(project_ids)) if project_ids else {}
    for project_id, model in sorted(models.items()):
        (row,) = yield READ_KEYS(of=project_id)
        stored, wanted = {(number, key) for number, key in row.keys or ()}, grant_keys_of(model)
        for _, key in sorted(stored - wanted):
            yield DROP_KEY(of=project_id, key=key)
        yield from _insert_keys(project_id, wanted - stored)


def add_keys_of_group(group: Group) -> Verb[None]:
    """Write the keys of a new group, which a project in a file may name before the group exists."""
    granted = yield GRANTED_TO(project=group.project_id, group=group.group_id)
    numbers, keys = [row.application_id for row in granted], group_index_keys(group)
    yield from _insert_keys(
        group.project_id, {(number, stored_key(number, key)) for number in numbers for key in keys}
    )


def _insert_keys(project_id: str, keys: Collection[GrantKey]) -> Verb[None]:
    if keys:
        yield INSERT_KEY.bulk(
            [{"application_id": number, "index_key": key, "project_id": project_id} for number, key in sorted(keys)]
        )


# The keys of one person.


def _text(value: str) -> ColumnElement[str]:
    return literal_column(f"'{value}'", Text())


def _person_keys(user_id: ColumnElement[str]) -> Iterator[Select[Any]]:
    """Select the keys of a person, as `person_index_keys` makes them of facts.

    No query refers to an outer row: SQLite would run it for every row of the index.
    """
    me = users.alias("me")
    this = me.c.user_id == user_id
    has_totp = exists().where(totp_factors.c.user_id == user_id)
    has_passkey = exists().where(passkeys.c.user_id == user_id)
    system_tags: dict[str, tuple[ColumnElement[bool], ...]] = {
        "email_verified": (this, me.c.email_verified.is_(True)),
        "phone_verified": (this, me.c.phone_verified.is_(True)),
        "2step": (this, or_(has_totp, has_passkey, me.c.email_code.is_(True), me.c.phone_code.is_(True))),
        "2step_totp": (has_totp,),
        "2step_passkey": (has_passkey,),
        "2step_email": (this, me.c.email_code.is_(True)),
        "2step_phone": (this, me.c.phone_code.is_(True)),
    }
    yield select(_text(key_text(ANYONE)).label("key"))
    yield select(_text("uid:") + user_id)
    yield select(_text("domain:") + DomainOf(me.c.login_key)).where(this, me.c.email_verified.is_(True))
    for tag, holds in system_tags.items():
        yield select(_text(f"tag:{tag}")).where(*holds)
    yield select(_text("tag:") + user_tags.c.tag).where(user_tags.c.user_id == user_id)
    yield select(_text("purchase:") + user_purchases.c.purchase).where(user_purchases.c.user_id == user_id)
    yield select(_text("group:") + group_members.c.group_id).where(group_members.c.user_id == user_id)


def granting_projects(user_id: ColumnElement[str]) -> Select[Any]:
    """Select the projects that may grant a person roles of the applications, with the versions of their models.

    A project may be in several rows; a removed one has no version.
    """
    version = model_version(grant_keys.c.project_id, projects.c.removed.is_(False))
    keys = union_all(*_person_keys(user_id)).subquery()
    stored = select(cast(applications.c.application_id, Text()) + _text(":") + keys.c.key).where(
        InNumberList(applications.c.application_id, "applications")
    )
    return select(RowsAsJson(grant_keys.c.application_id, grant_keys.c.project_id, version)).where(
        InSelect(grant_keys.c.index_key, stored)
    )


def model_version(project_id: ColumnElement[str], *conditions: ColumnElement[bool]) -> ColumnElement[int]:
    """Select the version of a project's model, by its key: joined, PostgreSQL may read every project instead."""
    return select(projects.c.model_version).where(projects.c.project_id == project_id, *conditions).scalar_subquery()
