"""Schemas have object types; application 1 has app.can_manage_objects, of project_owner and object_manager (R12)."""

import json
import zlib
from typing import Any

from alembic import op
from sqlalchemy import Column, Row, Text, text

revision = "0065"
down_revision = "0064"

RULE = {
    "value": False,
    "protected": False,
    "description": "Create, move and delete the application's objects",
}
GRANT = {"value": True}
OWNER, MANAGER = "project_owner", "object_manager"
SCHEMA = text("SELECT private_data, version, updated_at FROM application_schemas WHERE application_id = 1")
SAVE_SCHEMA = text("UPDATE application_schemas SET private_data = :rules, version = :number WHERE application_id = 1")
ROLE = text("SELECT * FROM roles WHERE application_id = 1 AND role_key = :key")
SAVE_ROLE = text("UPDATE roles SET meta = :meta, version = version + 1 WHERE application_id = 1 AND role_key = :key")
ADD_ROLE = text(
    "INSERT INTO roles (application_id, role_key, name, description, protected, is_default, condition_mode,"
    " user_limit, params, meta, version)"
    " VALUES (1, :key, :key, 'Manage the objects of the application', false, false, 'grant', 0, '', :meta, 1)"
)
SET_REPLACED = text(
    "UPDATE schema_versions SET replaced = :parts WHERE application_id = 1 AND version = :number RETURNING version"
)
INSERT_VERSION = text(
    "INSERT INTO schema_versions (application_id, version, saved_at, actor, changes)"
    " VALUES (1, :number, :saved_at, '', '[]')"
)


def upgrade() -> None:
    op.add_column("application_schemas", Column("objects", Text, nullable=False, server_default=text("'{}'")))
    there = op.get_bind()
    found = there.execute(SCHEMA).one_or_none()
    if found is None:  # a new installation, which gets the rule and the role with application 1
        return
    rules = json.loads(found.private_data)
    rules.setdefault("app", {})["can_manage_objects"] = RULE
    there.execute(SAVE_SCHEMA, {"rules": encode(rules), "number": found.version + 1})
    replaced: dict[str, object] = {}
    owner = there.execute(ROLE, {"key": OWNER}).one_or_none()
    if owner is not None:
        meta = json.loads(owner.meta)
        meta.setdefault("private_data", {}).setdefault("app", {})["can_manage_objects"] = GRANT
        there.execute(SAVE_ROLE, {"meta": encode(meta), "key": OWNER})
        replaced[OWNER] = role_document(owner)
    if there.execute(ROLE, {"key": MANAGER}).one_or_none() is None:
        meta = {"private_data": {"app": {"can_manage_objects": GRANT}}}
        there.execute(ADD_ROLE, {"meta": encode(meta), "key": MANAGER})
        replaced[MANAGER] = None
    sections = {"private_data": json.loads(found.private_data)}
    parts = zlib.compress(encode({"sections": sections, "roles": replaced}).encode())
    if there.execute(SET_REPLACED, {"parts": parts, "number": found.version}).all():  # versions are kept since a save
        there.execute(INSERT_VERSION, {"number": found.version + 1, "saved_at": found.updated_at})


def encode(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))


def role_document(role: Row[Any]) -> dict[str, object]:
    return {
        "name": role.name,
        "description": role.description,
        "protected": bool(role.protected),
        "default": bool(role.is_default),
        "condition": None if role.condition is None else json.loads(role.condition),
        "condition_mode": role.condition_mode,
        "user_limit": role.user_limit,
        "params": role.params,
        "meta": json.loads(role.meta),
        "version": role.version,
    }
