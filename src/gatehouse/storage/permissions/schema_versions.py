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
from gatehouse.permissions.model.schema_version import VERSION_BYTES_MOST, VERSIONS_MOST, Tally
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.applications import schema_versions

SECTIONS: Final = ("login", "private_data", "public_data", "secret_data")
ROLE_FIELDS: Final = (
    *("name", "description", "protected", "default", "condition", "condition_mode"),
    *("user_limit", "params", "meta", "version"),
)
COMPRESSION: Final = 3  # of 9: a section shrinks to a tenth in a third of the time of 9

_THIS: Final = schema_versions.c.application_id == bindparam("of")
KEEP = Statement(upsert(schema_versions).on_conflict_do_nothing())
REPLACE = Statement(
    update(schema_versions)
    .where(_THIS, schema_versions.c.version == bindparam("number"))
    .values(replaced=bindparam("parts"))
)
SIZES = Statement(
    select(schema_versions.c.version, func.length(schema_versions.c.replaced).label("size"))
    .where(_THIS)
    .order_by(schema_versions.c.version.desc())
)
SINCE = Statement(
    select(schema_versions.c.version, schema_versions.c.saved_at, schema_versions.c.replaced)
    .where(_THIS, schema_versions.c.version >= bindparam("number"))
    .order_by(schema_versions.c.version.desc())
)
FORGET_OLD = Statement(delete(schema_versions).where(_THIS, schema_versions.c.version <= bindparam("up_to")))
FORGET_ALL = Statement(delete(schema_versions).where(_THIS))


class Replaced(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a version that the next one has otherwise."""

    sections: dict[str, msgspec.Raw] = {}
    roles: dict[str, msgspec.Raw] = {}  # by key; null where the version had no such role


def keep_version(
    before: ApplicationModel, after: ApplicationModel, *, changes: Sequence[Tally], actor: str
) -> Verb[None]:
    """Part of every save. What was there before is kept too if no save brought it: the first state."""
    application_id = after.application.application_id
    yield KEEP(**_columns(before), actor="", changes=[])
    yield REPLACE(of=application_id, number=before.schema.version, parts=_replaced(before, after))
    yield KEEP(**_columns(after), actor=actor, changes=[msgspec.to_builtins(tally) for tally in changes])
    kept = yield SIZES(of=application_id)
    forgotten = _over_limit(kept)
    if forgotten is not None:
        yield FORGET_OLD(of=application_id, up_to=forgotten)


def forget_versions(application_id: int) -> Verb[None]:
    yield FORGET_ALL(of=application_id)


def past_model(model: ApplicationModel, number: int) -> Verb[ApplicationModel | None]:
    """The application as that version was; None when it is not kept. `model` is read in the same transaction."""
    rows = yield SINCE(of=model.application.application_id, number=number)
    numbers = [row.version for row in rows if row.replaced is not None or row.version == model.schema.version]
    if numbers != list(range(model.schema.version, number - 1, -1)):
        return None
    sections: dict[str, msgspec.Raw] = {}
    roles: dict[str, msgspec.Raw] = {}
    for row in rows[1:]:  # the newest has replaced nothing yet
        parts = msgspec.json.decode(zlib.decompress(row.replaced), type=Replaced)
        sections |= parts.sections
        roles |= parts.roles
    return _overlaid(model, rows[-1], sections, roles)


def tallies(documents: object) -> tuple[Tally, ...]:
    return msgspec.convert(documents, tuple[Tally, ...])


def _columns(model: ApplicationModel) -> dict[str, object]:
    return {
        "application_id": model.application.application_id,
        "version": model.schema.version,
        "saved_at": model.schema.updated_at,
        "replaced": None,
    }


def _replaced(before: ApplicationModel, after: ApplicationModel) -> bytes:
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


def _over_limit(rows: Iterable[Row]) -> int | None:
    """The newest of the versions that are no longer kept, newest first: beyond the count, or beyond the bytes."""
    size = 0
    for place, row in enumerate(rows):
        size += row.size or 0
        if place >= VERSIONS_MOST or size > VERSION_BYTES_MOST:
            return int(row.version)
    return None


def _overlaid(
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
            known[key] = _role(application_id, document)
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


def _role(application_id: int, fields: dict[str, Any]) -> Role:
    condition = fields["condition"]
    return Role(
        **{
            **fields,
            "application_id": application_id,
            "condition": None if condition is None else stored_condition(condition),
            "condition_mode": ConditionMode(fields["condition_mode"]),
        }
    )
