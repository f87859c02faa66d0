"""Keeps applications with their schemas and roles (ApplicationStore)."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import bindparam, case, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import Record
from gatehouse.permissions.conditions import stored_condition
from gatehouse.permissions.errors import ApplicationNotFound, NameTaken, ProjectNotFound
from gatehouse.permissions.facts import ApplicationModel
from gatehouse.permissions.model.application import FIRST_GENERATED_ID, Application
from gatehouse.permissions.model.application_key import ApplicationKey, KeySource
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.store import Change, NewApplication
from gatehouse.storage.audit import record
from gatehouse.storage.permissions.grants import strip_roles
from gatehouse.storage.permissions.held import Cells
from gatehouse.storage.permissions.records import give, role_holders, touch_record
from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.statements import AnyOf, OneOfNumbers, Row, RowsAsJson, Statement, Verb, document_of
from gatehouse.storage.tables import (
    application_ids,
    application_keys,
    application_schemas,
    applications,
    projects,
    role_assignments,
    roles,
)

_HIGHEST = func.coalesce(func.max(application_ids.c.application_id), 0)
_NEXT = case((_HIGHEST < FIRST_GENERATED_ID, literal(FIRST_GENERATED_ID)), else_=_HIGHEST + 1)
RESERVE_NEXT = Statement(  # without a WHERE SQLite would take ON for the beginning of a join
    insert(application_ids)
    .from_select(["application_id"], select(_NEXT).where(application_ids.c.application_id > 0))
    .on_conflict_do_nothing()
    .returning(application_ids.c.application_id)
)
RESERVE = Statement(insert(application_ids).on_conflict_do_nothing().returning(application_ids.c.application_id))

_FIXED: Final = frozenset({"application_id", "created_at", "version"})
_CHANGEABLE: Final = tuple(column.name for column in applications.c if column.name not in _FIXED)
_THIS = applications.c.application_id == bindparam("of")

INSERT_APPLICATION = Statement(insert(applications).on_conflict_do_nothing().returning(applications.c.application_id))
UPDATE_APPLICATION = Statement(
    update(applications)
    .where(_THIS)
    .values({name: bindparam(name) for name in _CHANGEABLE} | {"version": applications.c.version + 1})
)
HOLD_APPLICATION = Statement(select(applications.c.application_id).where(_THIS).with_for_update())
HOLD_PROJECT = Statement(select(projects.c.removed).where(projects.c.project_id == bindparam("of")).with_for_update())
NAMESAKE = Statement(
    select(applications.c.application_id).where(
        applications.c.project_id == bindparam("project"),
        applications.c.name == bindparam("name"),
        applications.c.removed.is_(False),
        applications.c.application_id != bindparam("but"),
    )
)
_KEY_COLUMNS: Final = ("kid", "application_id", "source", "pem", "created_at")
_SERVICE_KEY = select(RowsAsJson(*(application_keys.c[name] for name in _KEY_COLUMNS))).where(
    application_keys.c.application_id == applications.c.application_id,
    application_keys.c.source == KeySource.SERVICE_META.value,
)
_WHOLE = (applications, _SERVICE_KEY.scalar_subquery().label("service_key"))
APPLICATION = Statement(select(*_WHOLE).where(_THIS))
IN_PROJECTS = Statement(
    select(*_WHOLE)
    .where(AnyOf(applications.c.project_id, "projects"), applications.c.removed.is_(False))
    .order_by(applications.c.application_id)
)
INSERT_KEY = Statement(insert(application_keys))
DROP_SERVICE_KEY = Statement(
    delete(application_keys).where(
        application_keys.c.application_id == bindparam("of"),
        application_keys.c.source == KeySource.SERVICE_META.value,
    )
)

INSERT_SCHEMA = Statement(insert(application_schemas))
UPDATE_SCHEMA = Statement(
    update(application_schemas)
    .where(application_schemas.c.application_id == bindparam("of"))
    .values(
        {name: bindparam(name) for name in ("login", "private_data", "public_data", "secret_data", "updated_at")}
        | {"version": application_schemas.c.version + 1}
    )
)
HOLD_SCHEMA_ALONE = Statement(
    select(application_schemas.c.version)
    .where(application_schemas.c.application_id == bindparam("of"))
    .with_for_update()
)
_ROLE_COLUMNS: Final = (
    *("application_id", "name", "description", "protected", "is_default", "condition", "condition_mode"),
    *("user_limit", "params", "meta", "version"),
)
_ROLES = select(RowsAsJson(*(roles.c[name] for name in _ROLE_COLUMNS))).where(
    roles.c.application_id == applications.c.application_id
)
_SCHEMA_PREFIX: Final = "schema_"
MODELS = Statement(
    select(
        *_WHOLE,
        *(
            column.label(f"{_SCHEMA_PREFIX}{column.name}")
            for column in application_schemas.c
            if column.name != "application_id"
        ),
        _ROLES.scalar_subquery().label("roles"),
    )
    .join(application_schemas, application_schemas.c.application_id == applications.c.application_id)
    .where(OneOfNumbers(applications.c.application_id, "applications"))
)
_THIS_ROLE = (roles.c.application_id == bindparam("of"), roles.c.role_key == bindparam("key"))
INSERT_ROLE = Statement(insert(roles))
UPDATE_ROLE = Statement(
    update(roles)
    .where(*_THIS_ROLE)
    .values(
        {
            column.name: bindparam(column.name)
            for column in roles.c
            if column.name not in {"application_id", "role_key", "version"}
        }
        | {"version": roles.c.version + 1}
    )
)
DROP_ROLE = Statement(delete(roles).where(*_THIS_ROLE))
_TAKE = (
    delete(role_assignments)
    .where(role_assignments.c.application_id == bindparam("of"), AnyOf(role_assignments.c.role_key, "keys"))
    .returning(role_assignments.c.user_id)
)
TAKE_ROLES = Statement(_TAKE)
TAKE_ROLES_BELOW = Statement(_TAKE.where(role_assignments.c.project_id != ""))


# -- applications -------------------------------------------------------------------------------------


def application(application_id: int) -> Verb[Application]:
    rows = yield APPLICATION(of=application_id)
    if not rows:
        raise ApplicationNotFound
    return _application(rows[0])


def applications_in(project_ids: Collection[str]) -> Verb[Sequence[Application]]:
    rows = yield IN_PROJECTS(projects=sorted(project_ids))
    return [_application(row) for row in rows]


def create_application(new: Callable[[int], tuple[NewApplication, Sequence[Record]]]) -> Verb[Application]:
    made, entries = new((yield from reserve_next_id()))
    yield from add_application(made)
    for entry in entries:
        yield from record(entry)
    return made.application


def add_application(new: NewApplication) -> Verb[None]:
    """Part of verbs that make applications; the id is reserved already. Raises NameTaken, ProjectNotFound."""
    if new.application.project_id is not None and not (yield HOLD_PROJECT(of=new.application.project_id)):
        raise ProjectNotFound
    yield from insert_application(new.application, new.schema, new.roles)
    if new.creator is not None:
        yield from give([new.creator], new.application.created_at)


def reserve_next_id() -> Verb[int]:
    while True:
        rows = yield RESERVE_NEXT()
        if rows:  # else somebody took it meanwhile; there is a higher one by now
            return int(rows[0].application_id)


def reserve_id(application_id: int) -> Verb[bool]:
    """Spend a certain id; False when it was spent before."""
    return bool((yield RESERVE(application_id=application_id)))


def insert_application(one: Application, schema: ApplicationSchema, its_roles: Iterable[Role]) -> Verb[None]:
    fields = {"application_id": one.application_id, "created_at": one.created_at, "version": one.version}
    if not (yield INSERT_APPLICATION(**_columns(one), **fields)):
        raise NameTaken(one.name)
    yield from _put_service_key(one)
    yield INSERT_SCHEMA(
        application_id=one.application_id,
        **_schema_columns(schema),
        updated_at=schema.updated_at,
        version=schema.version,
    )
    yield INSERT_ROLE.many(
        [
            {
                **_role_columns(role),
                "application_id": one.application_id,
                "role_key": role.key,
                "version": role.version,
            }
            for role in its_roles
        ]
    )


def edit_application(application_id: int, change: Change[Application]) -> Verb[Application]:
    if not (yield HOLD_APPLICATION(of=application_id)):
        raise ApplicationNotFound
    before = yield from application(application_id)
    edited = change(before)
    after = replace(
        edited.state,
        application_id=application_id,
        created_at=before.created_at,
        version=before.version + 1,
    )
    yield from _refuse_namesake(after)
    yield UPDATE_APPLICATION(of=application_id, **_columns(after))
    if after.service_key != before.service_key:
        yield DROP_SERVICE_KEY(of=application_id)
        yield from _put_service_key(after)
    for entry in edited.records:
        yield from record(entry)
    return after


def _refuse_namesake(one: Application) -> Verb[None]:
    """Names of one project are given while its row is held: none is taken between looking and writing."""
    if one.project_id is None:
        return
    if not (yield HOLD_PROJECT(of=one.project_id)):
        raise ProjectNotFound
    if not one.removed and (yield NAMESAKE(project=one.project_id, name=one.name, but=one.application_id)):
        raise NameTaken(one.name)


def _put_service_key(one: Application) -> Verb[None]:
    if one.service_key is not None:
        yield INSERT_KEY(**key_columns(one.service_key))


# -- schemas and roles --------------------------------------------------------------------------------


def application_models(application_ids: Collection[int]) -> Verb[Mapping[int, ApplicationModel]]:
    rows = yield MODELS(applications=sorted(application_ids))
    return {row.application_id: _model(row) for row in rows}


def edit_schema(application_id: int, change: Change[ApplicationModel]) -> Verb[ApplicationModel]:
    if not (yield HOLD_SCHEMA_ALONE(of=application_id)):
        raise ApplicationNotFound
    before = (yield from application_models([application_id]))[application_id]
    edited = change(before)
    after = _kept(before, edited.state)
    yield UPDATE_SCHEMA(of=application_id, **_schema_columns(after.schema), updated_at=after.schema.updated_at)
    yield from _write_roles(before, after)
    for entry in edited.records:
        yield from record(entry)
    return after


def _kept(before: ApplicationModel, state: ApplicationModel) -> ApplicationModel:
    """What is kept of an edited model, with the versions it gets."""
    application_id = before.application.application_id
    return ApplicationModel(
        application=before.application,
        schema=replace(state.schema, application_id=application_id, version=before.schema.version + 1),
        roles={
            role.key: _versioned(before.roles.get(role.key), replace(role, application_id=application_id))
            for role in state.roles.values()
        },
    )


def _versioned(before: Role | None, role: Role) -> Role:
    if before is None:
        return replace(role, version=1)
    same = replace(role, version=before.version)
    return before if same == before else replace(role, version=before.version + 1)


def _write_roles(before: ApplicationModel, after: ApplicationModel) -> Verb[None]:
    application_id = before.application.application_id
    gone = before.roles.keys() - after.roles.keys()
    shut = {key for key, role in after.roles.items() if role.protected and _was_public(before.roles.get(key))}
    yield from strip_roles(application_id, gone | shut)
    for key in sorted(gone):
        yield DROP_ROLE(of=application_id, key=key)
    for key, role in sorted(after.roles.items()):
        if key not in before.roles:
            yield INSERT_ROLE(
                **_role_columns(role), application_id=application_id, role_key=key, version=role.version
            )
        elif role != before.roles[key]:
            yield UPDATE_ROLE(of=application_id, key=key, **_role_columns(role))
    yield from _take_roles(application_id, gone, shut)


def _was_public(role: Role | None) -> bool:
    return role is not None and not role.protected


def _take_roles(application_id: int, everywhere: Collection[str], below: Collection[str]) -> Verb[None]:
    taken: list[Row] = []
    if everywhere:
        taken += yield TAKE_ROLES(of=application_id, keys=sorted(everywhere))
    if below:
        taken += yield TAKE_ROLES_BELOW(of=application_id, keys=sorted(below))
    for user_id in sorted({row.user_id for row in taken}):
        yield from touch_record(application_id, user_id)


class ApplicationStorage(Stored):
    application = look(application)
    applications_in = look(applications_in)
    create_application = act(create_application)
    edit_application = act(edit_application)
    edit_schema = act(edit_schema)
    role_holders = look(role_holders)


# -- rows ---------------------------------------------------------------------------------------------


def _columns(one: Application) -> dict[str, object]:
    return {name: getattr(one, name) for name in _CHANGEABLE}


def _application(row: Row) -> Application:
    fields = {column.name: getattr(row, column.name) for column in applications.c}
    keys = [key_of(cells) for cells in row.service_key or ()]
    return Application(**fields, service_key=keys[0] if keys else None)


def key_columns(key: ApplicationKey) -> dict[str, object]:
    return {name: getattr(key, name) for name in _KEY_COLUMNS}


def key_of(cells: Cells) -> ApplicationKey:
    fields = dict(zip(_KEY_COLUMNS, cells, strict=True))
    return ApplicationKey(**{**fields, "source": KeySource(fields["source"])})


def _schema_columns(schema: ApplicationSchema) -> dict[str, object]:
    return {name: getattr(schema, name) for name in ("login", "private_data", "public_data", "secret_data")}


def _model(row: Row) -> ApplicationModel:
    schema = {
        name.removeprefix(_SCHEMA_PREFIX): value
        for name, value in row._asdict().items()
        if name.startswith(_SCHEMA_PREFIX)
    }
    its_roles = sorted((_role(cells) for cells in row.roles or ()), key=lambda role: role.key)
    return ApplicationModel(
        application=_application(row),
        schema=ApplicationSchema(application_id=row.application_id, **schema),
        roles={role.key: role for role in its_roles},
    )


def _role_columns(role: Role) -> dict[str, object]:
    return {
        "name": role.name,
        "description": role.description,
        "protected": role.protected,
        "is_default": role.default,
        "condition": None if role.condition is None else role.condition.document,
        "condition_mode": role.condition_mode,
        "user_limit": role.user_limit,
        "params": role.params,
        "meta": role.meta,
    }


def _role(cells: Cells) -> Role:
    fields = dict(zip(_ROLE_COLUMNS, cells, strict=True))
    condition, default = fields["condition"], fields.pop("is_default")
    fields |= {
        "default": bool(default),
        "protected": bool(fields["protected"]),
        "condition": None if condition is None else stored_condition(document_of(condition)),
        "condition_mode": ConditionMode(fields["condition_mode"]),
        "meta": document_of(fields["meta"]),
    }
    return Role(**fields)
