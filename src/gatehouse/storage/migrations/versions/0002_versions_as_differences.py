"""Store versions of schemas as what the next save replaced, compressed, instead of whole.

Rows are migrated one by one, newest first: at most two versions of one application are in memory.
"""

import json
import zlib

from alembic import op
from sqlalchemy import BigInteger, Column, Connection, LargeBinary, PrimaryKeyConstraint, Text, text

revision = "0002"
down_revision = "0001"

SECTIONS = ("login", "private_data", "public_data", "secret_data")


def upgrade() -> None:
    there = op.get_bind()
    op.rename_table("schema_versions", "whole_schema_versions")
    if there.dialect.name == "postgresql":  # index names are unique there
        there.execute(text("ALTER INDEX pk_schema_versions RENAME TO pk_whole_schema_versions"))
    op.create_table(
        "schema_versions",
        Column("application_id", BigInteger, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("saved_at", BigInteger, nullable=False),
        Column("actor", Text, nullable=False),
        Column("changes", Text, nullable=False),
        Column("replaced", LargeBinary),
        PrimaryKeyConstraint("application_id", "version", name="pk_schema_versions"),
    )
    found = there.execute(text("SELECT DISTINCT application_id FROM whole_schema_versions ORDER BY application_id"))
    for application_id in found.scalars().all():
        convert(there, application_id)
    op.drop_table("whole_schema_versions")


def convert(there: Connection, application_id: int) -> None:
    numbers = there.execute(
        text("SELECT version FROM whole_schema_versions WHERE application_id = :of ORDER BY version DESC"),
        {"of": application_id},
    )
    newer: dict[str, dict[str, object]] | None = None
    for number in numbers.scalars().all():
        row = there.execute(
            text("SELECT * FROM whole_schema_versions WHERE application_id = :of AND version = :number"),
            {"of": application_id, "number": number},
        ).one()
        parts: dict[str, dict[str, object]] = {
            "sections": {name: json.loads(getattr(row, name)) for name in SECTIONS},
            "roles": {role["name"].lower(): role for role in json.loads(row.roles)},
        }
        there.execute(
            text(
                "INSERT INTO schema_versions"
                " (application_id, version, saved_at, actor, changes, replaced)"
                " VALUES (:of, :number, :saved_at, :actor, :changes, :replaced)"
            ),
            {
                "of": application_id,
                "number": number,
                "saved_at": row.saved_at,
                "actor": row.actor,
                "changes": row.changes,
                "replaced": None if newer is None else replaced(parts, newer),
            },
        )
        newer = parts


def replaced(older: dict[str, dict[str, object]], newer: dict[str, dict[str, object]]) -> bytes:
    """Return the parts of the older version that differ in the newer one; null for a role that is new there."""
    found = {
        kind: {
            name: older[kind].get(name)
            for name in sorted(older[kind].keys() | newer[kind].keys())
            if older[kind].get(name) != newer[kind].get(name)
        }
        for kind in ("sections", "roles")
    }
    return zlib.compress(json.dumps(found, separators=(",", ":")).encode())
