"""People can be banned; application 1 has the rule app.can_ban, which no existing role gets."""

import json
import zlib

from alembic import op
from sqlalchemy import BigInteger, Column, Connection, PrimaryKeyConstraint, Text, text

revision = "0013"
down_revision = "0012"

CAN_BAN = {"value": False, "protected": False, "description": "Ban people from the application"}
SCHEMA = text("SELECT private_data, version, updated_at FROM application_schemas WHERE application_id = 1")
SAVE_SCHEMA = text("UPDATE application_schemas SET private_data = :rules, version = :number WHERE application_id = 1")
SET_REPLACED = text(
    "UPDATE schema_versions SET replaced = :parts WHERE application_id = 1 AND version = :number RETURNING version"
)
INSERT_VERSION = text(
    "INSERT INTO schema_versions (application_id, version, saved_at, actor, changes)"
    " VALUES (1, :number, :saved_at, '', '[]')"
)


def upgrade() -> None:
    op.add_column("users", Column("bans", Text, nullable=False, server_default=text("'[]'")))
    op.create_table(
        "bans",
        Column("ban_id", Text, nullable=False),
        Column("user_id", Text, nullable=False),
        Column("application_id", BigInteger, nullable=False),
        Column("project_id", Text, nullable=False),
        Column("reason", Text, nullable=False),
        Column("public_text", Text, nullable=False),
        Column("until", BigInteger, nullable=False),
        Column("devices", BigInteger, nullable=False),
        Column("author", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("lifted_at", BigInteger, nullable=False),
        Column("lifted_by", Text, nullable=False),
        PrimaryKeyConstraint("ban_id", name="pk_bans"),
    )
    for name in ("user_id", "application_id", "project_id"):
        op.create_index(f"ix_bans_{name}_ban_id", "bans", [name, "ban_id"])
    op.create_index("ix_game_sessions_user_id", "game_sessions", ["user_id"])
    add_rule(op.get_bind())


def add_rule(there: Connection) -> None:
    found = there.execute(SCHEMA).one_or_none()
    if found is None:  # a new installation, which gets the rule with application 1
        return
    rules = json.loads(found.private_data)
    before = {"private_data": json.loads(found.private_data)}
    rules.setdefault("app", {})["can_ban"] = CAN_BAN
    there.execute(SAVE_SCHEMA, {"rules": json.dumps(rules, separators=(",", ":")), "number": found.version + 1})
    parts = zlib.compress(json.dumps({"sections": before}, separators=(",", ":")).encode())
    if there.execute(SET_REPLACED, {"parts": parts, "number": found.version}).all():  # versions are kept since a save
        there.execute(INSERT_VERSION, {"number": found.version + 1, "saved_at": found.updated_at})
