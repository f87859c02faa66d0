"""Project owners may ban from the applications of their project: project_owner has app.can_ban (R10)."""

import json
import zlib

from alembic import op
from sqlalchemy import text

revision = "0033"
down_revision = "0032"

ROLE = text("SELECT * FROM roles WHERE application_id = 1 AND role_key = 'project_owner'")
SAVE_ROLE = text(
    "UPDATE roles SET meta = :meta, version = version + 1 WHERE application_id = 1 AND role_key = 'project_owner'"
)
NEXT_SCHEMA = text(
    "UPDATE application_schemas SET version = version + 1 WHERE application_id = 1 RETURNING version, updated_at"
)
SET_REPLACED = text(
    "UPDATE schema_versions SET replaced = :parts WHERE application_id = 1 AND version = :number RETURNING version"
)
INSERT_VERSION = text(
    "INSERT INTO schema_versions (application_id, version, saved_at, actor, changes)"
    " VALUES (1, :number, :saved_at, '', '[]')"
)


def upgrade() -> None:
    there = op.get_bind()
    role = there.execute(ROLE).one_or_none()
    if role is None:  # a new installation, which gets the role with application 1
        return
    meta = json.loads(role.meta)
    rules = meta.setdefault("private_data", {}).setdefault("app", {})
    if "can_ban" in rules:  # an administrator has decided about it
        return
    rules["can_ban"] = {"value": True}
    there.execute(SAVE_ROLE, {"meta": json.dumps(meta, separators=(",", ":"))})
    schema = there.execute(NEXT_SCHEMA).one()
    before = {
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
    parts = zlib.compress(json.dumps({"roles": {"project_owner": before}}, separators=(",", ":")).encode())
    if there.execute(SET_REPLACED, {"parts": parts, "number": schema.version - 1}).all():  # versions are kept
        there.execute(INSERT_VERSION, {"number": schema.version, "saved_at": schema.updated_at})
