"""Keeps schemas and roles of applications, which are edited as one (ApplicationStore)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from sqlalchemy import bindparam, delete, insert, select, update

from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.documents.limits import refuse_role_conditions
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.model.application_limits import refuse_outgrown
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.rule import RuleSection
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.model.shared_trees import TreeInterner, model_weight
from gatehouse.permissions.store import Change
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.permissions.application_rows import APPLICATION_COLUMNS, application_from_row
from gatehouse.storage.permissions.grants import strip_roles
from gatehouse.storage.permissions.records import touch_record
from gatehouse.storage.permissions.schema_versions import save_version
from gatehouse.storage.permissions.structure_version import lock_structure
from gatehouse.storage.statements import InNumberList, InStringList, Row, Statement, Verb
from gatehouse.storage.tables.applications import application_schemas, applications, roles
from gatehouse.storage.tables.user_records import role_assignments

INSERT_SCHEMA = Statement(insert(application_schemas))
UPDATE_SCHEMA = Statement(
    update(application_schemas)
    .where(application_schemas.c.application_id == bindparam("of"))
    .values(
        {name: bindparam(name) for name in ("login", "private_data", "public_data", "secret_data", "updated_at")}
        | {"version": application_schemas.c.version + 1}
    )
)
TOUCH_SCHEMA = Statement(  # PostgreSQL would store a long section anew although it is the same
    update(application_schemas)
    .where(application_schemas.c.application_id == bindparam("of"))
    .values(updated_at=bindparam("updated_at"), version=application_schemas.c.version + 1)
)
LOCK_SCHEMA = Statement(
    select(application_schemas.c.version)
    .where(application_schemas.c.application_id == bindparam("of"))
    .with_for_update()
)
_ROLE_COLUMNS: Final = (
    *("application_id", "name", "description", "protected", "is_default", "condition", "condition_mode"),
    *("user_limit", "params", "meta", "version"),
)
_SCHEMA_PREFIX: Final = "schema_"
_MODELS = (
    select(
        *APPLICATION_COLUMNS,
        *(
            column.label(f"{_SCHEMA_PREFIX}{column.name}")
            for column in application_schemas.c
            if column.name != "application_id"
        ),
    )
    .join(application_schemas, application_schemas.c.application_id == applications.c.application_id)
    .order_by(applications.c.application_id)
)
MODELS = Statement(_MODELS.where(InNumberList(applications.c.application_id, "applications")))
ALL_MODELS = Statement(_MODELS)
# Rows of their own, not one document of all: each is decoded by a call of its own, and no call is long.
_ROLES = select(*(roles.c[name] for name in _ROLE_COLUMNS)).order_by(roles.c.application_id, roles.c.role_key)
ROLES = Statement(_ROLES.where(InNumberList(roles.c.application_id, "applications")))
ALL_ROLES = Statement(_ROLES)
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
_DROP_ASSIGNMENTS = (
    delete(role_assignments)
    .where(role_assignments.c.application_id == bindparam("of"), InStringList(role_assignments.c.role_key, "keys"))
    .returning(role_assignments.c.user_id)
)
DROP_ASSIGNMENTS = Statement(_DROP_ASSIGNMENTS)
DROP_PROJECT_ASSIGNMENTS = Statement(_DROP_ASSIGNMENTS.where(role_assignments.c.project_id != ""))


def insert_schema(application_id: int, schema: ApplicationSchema, its_roles: Iterable[Role]) -> Verb[None]:
    """Part of verbs that make applications."""
    made = list(its_roles)
    refuse_role_conditions((), made)
    yield INSERT_SCHEMA(
        application_id=application_id,
        **_schema_columns(schema),
        updated_at=schema.updated_at,
        version=schema.version,
    )
    yield INSERT_ROLE.bulk([{**_role_identity(application_id, role), **_role_columns(role)} for role in made])


def application_models(application_ids: Collection[int]) -> Verb[Mapping[int, ApplicationModel]]:
    """Part of verbs that see one moment."""
    rows = yield MODELS(applications=sorted(application_ids))
    its_roles = yield ROLES(applications=sorted(application_ids))
    return _models_from_rows(rows, its_roles)


def all_application_models() -> Verb[Mapping[int, ApplicationModel]]:
    """Removed ones too."""
    rows = yield ALL_MODELS()
    return _models_from_rows(rows, (yield ALL_ROLES()))


def edit_schema(application_id: int, change: Change[ApplicationModel], *, actor: str = "") -> Verb[ApplicationModel]:
    """`actor`: who is named as the one who saved where the change has no record of its own."""
    yield from lock_structure()
    if not (yield LOCK_SCHEMA(of=application_id)):
        raise ApplicationNotFound
    before = (yield from application_models([application_id]))[application_id]
    edited = change(before)
    after = _with_new_versions(before, edited.state)
    refuse_role_conditions(before.roles.values(), after.roles.values())
    refuse_outgrown(before, after)
    sections = _schema_columns(after.schema)
    if sections == _schema_columns(before.schema):
        yield TOUCH_SCHEMA(of=application_id, updated_at=after.schema.updated_at)
    else:
        yield UPDATE_SCHEMA(of=application_id, **sections, updated_at=after.schema.updated_at)
    yield from _write_roles(before, after)
    by = next((entry.actor for entry in edited.records), actor)
    yield from save_version(before, after, changes=edited.changes, actor=by)
    for entry in edited.records:
        yield from add_audit_record(entry)
    return after


def _with_new_versions(before: ApplicationModel, state: ApplicationModel) -> ApplicationModel:
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
    shut = {key for key, role in after.roles.items() if role.protected and _was_unprotected(before.roles.get(key))}
    yield from strip_roles(application_id, gone | shut)
    for key in sorted(gone):
        yield DROP_ROLE(of=application_id, key=key)
    for key, role in sorted(after.roles.items()):
        if key not in before.roles:
            yield INSERT_ROLE(**_role_identity(application_id, role), **_role_columns(role))
        elif role != before.roles[key]:
            yield UPDATE_ROLE(of=application_id, key=key, **_role_columns(role))
    yield from _drop_assignments(application_id, gone, shut)


def _was_unprotected(role: Role | None) -> bool:
    return role is not None and not role.protected


def _drop_assignments(application_id: int, everywhere: Collection[str], below: Collection[str]) -> Verb[None]:
    taken: list[Row] = []
    if everywhere:
        taken += yield DROP_ASSIGNMENTS(of=application_id, keys=sorted(everywhere))
    if below:
        taken += yield DROP_PROJECT_ASSIGNMENTS(of=application_id, keys=sorted(below))
    for user_id in sorted({row.user_id for row in taken}):
        yield from touch_record(application_id, user_id)


def _schema_columns(schema: ApplicationSchema) -> dict[str, object]:
    return {name: getattr(schema, name) for name in ("login", "private_data", "public_data", "secret_data")}


def _models_from_rows(rows: Iterable[Row], its_roles: Iterable[Row]) -> dict[int, ApplicationModel]:
    by_application: dict[int, list[Row]] = {}
    for row in its_roles:
        by_application.setdefault(row.application_id, []).append(row)
    return {row.application_id: _model_from_row(row, by_application.get(row.application_id, ())) for row in rows}


def _model_from_row(row: Row, role_rows: Iterable[Row]) -> ApplicationModel:
    trees = TreeInterner()
    schema = {
        name.removeprefix(_SCHEMA_PREFIX): value
        for name, value in row._asdict().items()
        if name.startswith(_SCHEMA_PREFIX)
    }
    schema |= {section: trees.intern_tree(schema[section], f"{section}.") for section in RuleSection}
    its_roles = sorted((_role_from_row(one, trees) for one in role_rows), key=lambda role: role.key)
    application = application_from_row(row)
    return ApplicationModel(
        application=application,
        schema=ApplicationSchema(application_id=row.application_id, **schema),
        roles={role.key: role for role in its_roles},
        size=trees.size,
        weight=model_weight(trees, application, its_roles),
    )


def _role_identity(application_id: int, role: Role) -> dict[str, object]:
    return {"application_id": application_id, "role_key": role.key, "version": role.version}


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


def _role_from_row(row: Row, trees: TreeInterner) -> Role:
    fields = row._asdict()
    condition = fields["condition"]
    fields |= {
        "default": fields.pop("is_default"),
        "condition": None if condition is None else stored_condition(condition),
        "condition_mode": ConditionMode(fields["condition_mode"]),
        "meta": trees.intern_role_tree(fields["meta"], fields["params"]),
    }
    return Role(**fields)
