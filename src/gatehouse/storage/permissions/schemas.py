"""Stores the rules and roles of each save, in the transaction of the save.

The newest version is the application itself. Each older one is stored as what the next save replaced of it: whole
sections and whole roles, compressed. So a save of one role stores one role, the oldest versions can be dropped at any
time, and a version is read by going back from the newest (docs/decisions/0027-caches-bounded-by-weight.md).
"""

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.fields.derive import entry_values
from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.documents.limits import refuse_outgrown, refuse_role_conditions
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import CHANGEABLE_ROLE_FIELDS, ROLE_FIELDS, ConditionMode, Role
from gatehouse.permissions.model.rules import RuleSection
from gatehouse.permissions.model.schema import ApplicationSchema, stored_object_types
from gatehouse.permissions.model.schema_version import MAX_VERSION_BYTES, MAX_VERSIONS, ChangeTally
from gatehouse.permissions.model.tree_interner import TreeInterner, model_weight
from gatehouse.permissions.store import Change
from gatehouse.storage.audit import add_audit_records
from gatehouse.storage.objects.reading import refuse_types_in_use
from gatehouse.storage.permissions.connections import strip_roles
from gatehouse.storage.permissions.row_readers import APPLICATION_COLUMNS, application_from_row
from gatehouse.storage.permissions.structure import lock_structure, lock_structure_shared
from gatehouse.storage.permissions.user_records import touch_record
from gatehouse.storage.statements import InNumberList, InStringList, Row, Statement, Verb
from gatehouse.storage.tables.permissions import (
    application_schemas,
    applications,
    role_assignments,
    roles,
    schema_versions,
)

SECTIONS: Final = ("login", "private_data", "public_data", "secret_data", "objects")
COMPRESSION: Final = 3  # of 9: shrinks a section to a tenth, in a third of the time that 9 takes

_VERSIONS_OF_APPLICATION: Final = schema_versions.c.application_id == bindparam("of")
INSERT_VERSION = Statement(lambda: upsert(schema_versions).on_conflict_do_nothing())
SET_REPLACED = Statement(
    lambda: (
        update(schema_versions)
        .where(_VERSIONS_OF_APPLICATION, schema_versions.c.version == bindparam("number"))
        .values(replaced=bindparam("parts"))
    )
)
VERSION_SIZES = Statement(
    lambda: (
        select(schema_versions.c.version, func.length(schema_versions.c.replaced).label("size"))
        .where(_VERSIONS_OF_APPLICATION)
        .order_by(schema_versions.c.version.desc())
    )
)
VERSIONS_SINCE = Statement(
    lambda: (
        select(schema_versions.c.version, schema_versions.c.saved_at, schema_versions.c.replaced)
        .where(_VERSIONS_OF_APPLICATION, schema_versions.c.version >= bindparam("number"))
        .order_by(schema_versions.c.version.desc())
    )
)
DROP_OLD_VERSIONS = Statement(
    lambda: delete(schema_versions).where(_VERSIONS_OF_APPLICATION, schema_versions.c.version <= bindparam("up_to"))
)
DROP_VERSIONS = Statement(lambda: delete(schema_versions).where(_VERSIONS_OF_APPLICATION))


class ReplacedParts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a version that differ in the next one."""

    sections: dict[str, msgspec.Raw] = {}
    roles: dict[str, msgspec.Raw] = {}  # by key; null where the version had no such role


def save_version(
    before: ApplicationModel, after: ApplicationModel, *, changes: Sequence[ChangeTally], actor: str
) -> Verb[None]:
    """Store the version of a save; part of every save. The first state, which no save created, is stored too."""
    application_id = after.application.application_id
    yield INSERT_VERSION(**_version_columns(before), actor="", changes=[])
    yield SET_REPLACED(of=application_id, number=before.schema.version, parts=_encode_replaced(before, after))
    yield INSERT_VERSION(
        **_version_columns(after), actor=actor, changes=[msgspec.to_builtins(tally) for tally in changes]
    )
    sizes = yield VERSION_SIZES(of=application_id)
    forgotten = _newest_over_limit(sizes)
    if forgotten is not None:
        yield DROP_OLD_VERSIONS(of=application_id, up_to=forgotten)


def delete_versions(application_id: int) -> Verb[None]:
    yield DROP_VERSIONS(of=application_id)


def past_model(model: ApplicationModel, number: int) -> Verb[ApplicationModel | None]:
    """Return the application at that version; None when it is no longer stored.

    `model` is read in the same transaction.
    """
    rows = yield VERSIONS_SINCE(of=model.application.application_id, number=number)
    numbers = [row.version for row in rows if row.replaced is not None or row.version == model.schema.version]
    if numbers != list(range(model.schema.version, number - 1, -1)):
        return None
    sections: dict[str, msgspec.Raw] = {}
    roles: dict[str, msgspec.Raw] = {}
    for row in rows[1:]:  # nothing has replaced parts of the newest version yet
        parts = msgspec.json.decode(zlib.decompress(row.replaced), type=ReplacedParts)
        sections |= parts.sections
        roles |= parts.roles
    return _apply_replaced(model, rows[-1], sections, roles)


def decode_tallies(documents: object) -> tuple[ChangeTally, ...]:
    return msgspec.convert(documents, tuple[ChangeTally, ...])


def _version_columns(model: ApplicationModel) -> dict[str, object]:
    return {
        "application_id": model.application.application_id,
        "version": model.schema.version,
        "saved_at": model.schema.updated_at,
        "replaced": None,
    }


def _encode_replaced(before: ApplicationModel, after: ApplicationModel) -> bytes:
    sections = {
        name: getattr(before.schema, name)
        for name in SECTIONS
        if getattr(before.schema, name) != getattr(after.schema, name)
    }
    roles = {
        key: None if (role := before.roles.get(key)) is None else entry_values(role, ROLE_FIELDS)
        for key in sorted(before.roles.keys() | after.roles.keys())
        if before.roles.get(key) != after.roles.get(key)
    }
    return zlib.compress(msgspec.json.encode({"sections": sections, "roles": roles}), COMPRESSION)


def _newest_over_limit(rows: Iterable[Row]) -> int | None:
    """Return the newest version beyond the limit of count or bytes; it and all older ones are deleted."""
    size = 0
    for place, row in enumerate(rows):
        size += row.size or 0
        if place >= MAX_VERSIONS or size > MAX_VERSION_BYTES:
            return int(row.version)
    return None


def _apply_replaced(
    model: ApplicationModel, row: Row, sections: dict[str, msgspec.Raw], roles: dict[str, msgspec.Raw]
) -> ApplicationModel:
    """Apply the replaced parts in order, newest first; of each part the oldest one wins."""
    application_id = model.application.application_id
    past = {name: msgspec.json.decode(text) for name, text in sections.items()}
    if "objects" in past:
        past["objects"] = stored_object_types(past["objects"])
    known = dict(model.roles)
    for key, text in roles.items():
        document = msgspec.json.decode(text)
        if document is None:
            known.pop(key, None)
        else:
            known[key] = _role_from_document(application_id, document)
    return ApplicationModel(
        application=model.application,
        schema=ApplicationSchema(
            application_id=application_id,
            version=row.version,
            updated_at=row.saved_at,
            **{name: past.get(name, getattr(model.schema, name)) for name in SECTIONS},
        ),
        roles={key: known[key] for key in sorted(known)},
    )


def _role_from_document(application_id: int, fields: dict[str, Any]) -> Role:
    condition = fields["condition"]
    return Role(
        **{
            **fields,
            "application_id": application_id,
            "condition": None if condition is None else stored_condition(condition),
            "condition_mode": ConditionMode(fields["condition_mode"]),
        }
    )


# Stores schemas and roles of applications, which are edited together (ApplicationStore).


INSERT_SCHEMA = Statement(lambda: insert(application_schemas))
UPDATE_SCHEMA = Statement(
    lambda: (
        update(application_schemas)
        .where(application_schemas.c.application_id == bindparam("of"))
        .values(
            {name: bindparam(name) for name in (*SECTIONS, "updated_at")}
            | {"version": application_schemas.c.version + 1}
        )
    )
)
TOUCH_SCHEMA = Statement(  # PostgreSQL would rewrite a long section even if it is unchanged
    lambda: (
        update(application_schemas)
        .where(application_schemas.c.application_id == bindparam("of"))
        .values(updated_at=bindparam("updated_at"), version=application_schemas.c.version + 1)
    )
)
LOCK_SCHEMA = Statement(
    lambda: (
        select(application_schemas.c.version)
        .where(application_schemas.c.application_id == bindparam("of"))
        .with_for_update()
    )
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
MODELS = Statement(lambda: _MODELS.where(InNumberList(applications.c.application_id, "applications")))
ALL_MODELS = Statement(lambda: _MODELS)
# Each role is its own row, not part of one document: each is decoded by its own short call.
_ROLES = select(*(column for column in roles.c if column is not roles.c.role_key)).order_by(
    roles.c.application_id, roles.c.role_key
)
ROLES = Statement(lambda: _ROLES.where(InNumberList(roles.c.application_id, "applications")))
ALL_ROLES = Statement(lambda: _ROLES)
_THIS_ROLE = (roles.c.application_id == bindparam("of"), roles.c.role_key == bindparam("key"))
INSERT_ROLE = Statement(lambda: insert(roles))
UPDATE_ROLE = Statement(
    lambda: (
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
)
DROP_ROLE = Statement(lambda: delete(roles).where(*_THIS_ROLE))
_DROP_ASSIGNMENTS = (
    delete(role_assignments)
    .where(role_assignments.c.application_id == bindparam("of"), InStringList(role_assignments.c.role_key, "keys"))
    .returning(role_assignments.c.user_id)
)
DROP_ASSIGNMENTS = Statement(lambda: _DROP_ASSIGNMENTS)
DROP_PROJECT_ASSIGNMENTS = Statement(lambda: _DROP_ASSIGNMENTS.where(role_assignments.c.project_id != ""))


def insert_schema(application_id: int, schema: ApplicationSchema, its_roles: Iterable[Role]) -> Verb[None]:
    """Insert the schema; part of verbs that create applications."""
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
    """Return the models of applications; part of verbs that read one snapshot."""
    rows = yield MODELS(applications=sorted(application_ids))
    its_roles = yield ROLES(applications=sorted(application_ids))
    return _models_from_rows(rows, its_roles)


def all_application_models() -> Verb[Mapping[int, ApplicationModel]]:
    """Return the models of all applications, also of removed ones."""
    rows = yield ALL_MODELS()
    return _models_from_rows(rows, (yield ALL_ROLES()))


class RolesRemoved(Exception):
    """The change removes roles from projects, which only a holder of the whole structure may do: run it again."""


def edit_schema(
    application_id: int, change: Change[ApplicationModel], *, actor: str = "", may_remove: bool = False
) -> Verb[ApplicationModel]:
    """Edit a schema.

    `actor` is the author of the version where the change has no audit record of its own. `may_remove`: whether the
    change may remove roles from projects, or make them protected; otherwise it raises RolesRemoved.
    """
    yield from lock_structure() if may_remove else lock_structure_shared()
    if not (yield LOCK_SCHEMA(of=application_id)):
        raise ApplicationNotFound
    before = (yield from application_models([application_id]))[application_id]
    edited = change(before)
    after = _with_new_versions(before, edited.state)
    refuse_role_conditions(before.roles.values(), after.roles.values())
    refuse_outgrown(before, after)
    yield from refuse_types_in_use(application_id, before.schema.objects.keys() - after.schema.objects.keys())
    sections = _schema_columns(after.schema)
    if sections == _schema_columns(before.schema):
        yield TOUCH_SCHEMA(of=application_id, updated_at=after.schema.updated_at)
    else:
        yield UPDATE_SCHEMA(of=application_id, **sections, updated_at=after.schema.updated_at)
    yield from _write_roles(before, after, may_remove=may_remove)
    by = next((entry.actor for entry in edited.records), actor)
    yield from save_version(before, after, changes=edited.changes, actor=by)
    yield from add_audit_records(edited.records)
    return after


def _with_new_versions(before: ApplicationModel, state: ApplicationModel) -> ApplicationModel:
    """Return the edited model as it is stored, with its new versions."""
    application_id = before.application.application_id
    return ApplicationModel(
        application=before.application,
        schema=replace(state.schema, application_id=application_id, version=before.schema.version + 1),
        roles={
            role.key: _with_next_version(
                before.roles.get(role.key),
                replace(role, application_id=application_id),
                before.schema.version + 1,
            )
            for role in state.roles.values()
        },
    )


def _with_next_version(before: Role | None, role: Role, schema_version: int) -> Role:
    """A new generation ends at once what is held of an earlier role with this key on objects (R12)."""
    if before is None:
        return replace(role, version=1, generation=schema_version)
    if replace(role, version=before.version, generation=before.generation) == before:
        return before
    generation = schema_version if role.protected and not before.protected else before.generation
    return replace(role, version=before.version + 1, generation=generation)


def _write_roles(before: ApplicationModel, after: ApplicationModel, *, may_remove: bool) -> Verb[None]:
    application_id = before.application.application_id
    gone = before.roles.keys() - after.roles.keys()
    shut = {key for key, role in after.roles.items() if role.protected and _was_unprotected(before.roles.get(key))}
    if gone | shut:
        if not may_remove:
            raise RolesRemoved
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
    return {name: getattr(schema, name) for name in SECTIONS}


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
    schema["objects"] = stored_object_types(schema["objects"])
    schema |= {section: trees.intern_tree(schema[section], f"{section}.") for section in RuleSection}
    its_roles = sorted((_role_from_row(role_row, trees) for role_row in role_rows), key=lambda role: role.key)
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
    fields = entry_values(role, CHANGEABLE_ROLE_FIELDS)
    return fields | {"name": role.name, "is_default": fields.pop("default"), "generation": role.generation}


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
