"""Keeps what rules and roles were at each save, within the transaction of the save.

The newest version is the application itself. Each older one is stored as what the next save replaced of it: whole
sections and whole roles, compressed. So a save of one role stores one role, the oldest versions can be dropped at any
time, and a version is read by going back from the newest (docs/decisions/0027-caches-bounded-by-weight.md).
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.model.schema_version import MAX_VERSION_BYTES, MAX_VERSIONS, ChangeTally
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.applications import schema_versions

SECTIONS: Final = ("login", "private_data", "public_data", "secret_data")
ROLE_FIELDS: Final = (
    *("name", "description", "protected", "default", "condition", "condition_mode"),
    *("user_limit", "params", "meta", "version"),
)
COMPRESSION: Final = 3  # of 9: a section shrinks to a tenth in a third of the time of 9

_VERSIONS_OF_APPLICATION: Final = schema_versions.c.application_id == bindparam("of")
INSERT_VERSION = Statement(upsert(schema_versions).on_conflict_do_nothing())
SET_REPLACED = Statement(
    update(schema_versions)
    .where(_VERSIONS_OF_APPLICATION, schema_versions.c.version == bindparam("number"))
    .values(replaced=bindparam("parts"))
)
VERSION_SIZES = Statement(
    select(schema_versions.c.version, func.length(schema_versions.c.replaced).label("size"))
    .where(_VERSIONS_OF_APPLICATION)
    .order_by(schema_versions.c.version.desc())
)
VERSIONS_SINCE = Statement(
    select(schema_versions.c.version, schema_versions.c.saved_at, schema_versions.c.replaced)
    .where(_VERSIONS_OF_APPLICATION, schema_versions.c.version >= bindparam("number"))
    .order_by(schema_versions.c.version.desc())
)
DROP_OLD_VERSIONS = Statement(
    delete(schema_versions).where(_VERSIONS_OF_APPLICATION, schema_versions.c.version <= bindparam("up_to"))
)
DROP_VERSIONS = Statement(delete(schema_versions).where(_VERSIONS_OF_APPLICATION))


class ReplacedParts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a version that the next one has otherwise."""

    sections: dict[str, msgspec.Raw] = {}
    roles: dict[str, msgspec.Raw] = {}  # by key; null where the version had no such role


def save_version(
    before: ApplicationModel, after: ApplicationModel, *, changes: Sequence[ChangeTally], actor: str
) -> Verb[None]:
    """Part of every save. What was there before is kept too if no save brought it: the first state."""
    application_id = after.application.application_id
    yield INSERT_VERSION(**_version_columns(before), actor="", changes=[])
    yield SET_REPLACED(of=application_id, number=before.schema.version, parts=_encode_replaced(before, after))
    yield INSERT_VERSION(
        **_version_columns(after), actor=actor, changes=[msgspec.to_builtins(tally) for tally in changes]
    )
    kept = yield VERSION_SIZES(of=application_id)
    forgotten = _newest_over_limit(kept)
    if forgotten is not None:
        yield DROP_OLD_VERSIONS(of=application_id, up_to=forgotten)


def delete_versions(application_id: int) -> Verb[None]:
    yield DROP_VERSIONS(of=application_id)


def past_model(model: ApplicationModel, number: int) -> Verb[ApplicationModel | None]:
    """The application as that version was; None when it is not kept. `model` is read in the same transaction."""
    rows = yield VERSIONS_SINCE(of=model.application.application_id, number=number)
    numbers = [row.version for row in rows if row.replaced is not None or row.version == model.schema.version]
    if numbers != list(range(model.schema.version, number - 1, -1)):
        return None
    sections: dict[str, msgspec.Raw] = {}
    roles: dict[str, msgspec.Raw] = {}
    for row in rows[1:]:  # the newest has replaced nothing yet
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
        key: None if (role := before.roles.get(key)) is None else _role_document(role)
        for key in sorted(before.roles.keys() | after.roles.keys())
        if before.roles.get(key) != after.roles.get(key)
    }
    return zlib.compress(msgspec.json.encode({"sections": sections, "roles": roles}), COMPRESSION)


def _newest_over_limit(rows: Iterable[Row]) -> int | None:
    """The newest of the versions that are no longer kept, newest first: beyond the count, or beyond the bytes."""
    size = 0
    for place, row in enumerate(rows):
        size += row.size or 0
        if place >= MAX_VERSIONS or size > MAX_VERSION_BYTES:
            return int(row.version)
    return None


def _apply_replaced(
    model: ApplicationModel, row: Row, sections: dict[str, msgspec.Raw], roles: dict[str, msgspec.Raw]
) -> ApplicationModel:
    """Of each part the last word counts: the oldest of those that were replaced since."""
    application_id = model.application.application_id
    past = {name: msgspec.json.decode(text) for name, text in sections.items()}
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


def _role_document(role: Role) -> dict[str, object]:
    condition = None if role.condition is None else role.condition.document
    return {name: getattr(role, name) for name in ROLE_FIELDS} | {"condition": condition}


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
