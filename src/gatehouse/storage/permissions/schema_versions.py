"""Keeps what rules and roles were at each save, within the transaction of the save."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, delete
from sqlalchemy.dialects.postgresql import insert

from gatehouse.permissions.documents.conditions import stored_condition
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.role import ConditionMode, Role
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.model.schema_version import VERSIONS_MOST, Tally
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.applications import schema_versions

SECTIONS: Final = ("login", "private_data", "public_data", "secret_data")
ROLE_FIELDS: Final = (
    *("name", "description", "protected", "default", "condition", "condition_mode"),
    *("user_limit", "params", "meta", "version"),
)

KEEP = Statement(insert(schema_versions).on_conflict_do_nothing())
FORGET_OLD = Statement(
    delete(schema_versions).where(
        schema_versions.c.application_id == bindparam("of"), schema_versions.c.version <= bindparam("up_to")
    )
)
FORGET_ALL = Statement(delete(schema_versions).where(schema_versions.c.application_id == bindparam("of")))


def keep_version(
    before: ApplicationModel, after: ApplicationModel, *, changes: Sequence[Tally], actor: str
) -> Verb[None]:
    """Part of every save. What was there before is kept too if no save brought it: the first state."""
    application_id = after.application.application_id
    yield KEEP(**_columns(before), actor="", changes=[])
    yield KEEP(**_columns(after), actor=actor, changes=[msgspec.to_builtins(tally) for tally in changes])
    yield FORGET_OLD(of=application_id, up_to=after.schema.version - VERSIONS_MOST)


def forget_versions(application_id: int) -> Verb[None]:
    yield FORGET_ALL(of=application_id)


def _columns(model: ApplicationModel) -> dict[str, object]:
    return {
        "application_id": model.application.application_id,
        "version": model.schema.version,
        "saved_at": model.schema.updated_at,
        **{name: getattr(model.schema, name) for name in SECTIONS},
        "roles": [_role_document(role) for _, role in sorted(model.roles.items())],
    }


def _role_document(role: Role) -> dict[str, object]:
    condition = None if role.condition is None else role.condition.document
    return {name: getattr(role, name) for name in ROLE_FIELDS} | {"condition": condition}


def past_model(row: Row, application: Application) -> ApplicationModel:
    return ApplicationModel(
        application=application,
        schema=ApplicationSchema(
            application_id=row.application_id,
            version=row.version,
            updated_at=row.saved_at,
            **{name: getattr(row, name) for name in SECTIONS},
        ),
        roles={role.key: role for role in _roles(row.application_id, row.roles)},
    )


def _roles(application_id: int, documents: Iterable[dict[str, Any]]) -> Iterable[Role]:
    for fields in documents:
        condition = fields["condition"]
        yield Role(
            **{
                **fields,
                "application_id": application_id,
                "condition": None if condition is None else stored_condition(condition),
                "condition_mode": ConditionMode(fields["condition_mode"]),
            }
        )


def tallies(documents: object) -> tuple[Tally, ...]:
    return msgspec.convert(documents, tuple[Tally, ...])
