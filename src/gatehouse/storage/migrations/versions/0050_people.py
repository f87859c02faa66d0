"""Find people without a password by their import, and what happened to a person; save views of lists."""

from alembic import op
from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Text, text

revision = "0050"
down_revision = "0047"

RARE = text("event NOT IN ('game.confirmed', 'grant.made', 'login.done', 'session.ended', 'session.opened')")


def upgrade() -> None:
    op.create_table(
        "imported_people",
        Column("user_id", Text, nullable=False),
        Column("import_id", Text, nullable=False),
        PrimaryKeyConstraint("user_id", name="pk_imported_people"),
    )
    op.create_index("ix_imported_people_import_id", "imported_people", ["import_id", "user_id"])
    op.create_table(
        "saved_views",
        Column("user_id", Text, nullable=False),
        Column("list", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("query", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("user_id", "list", "name", name="pk_saved_views"),
    )
    op.create_index(
        "ix_audit_events_about",
        "audit_events",
        ["subject", "at", "record_id"],
        postgresql_where=RARE,
        sqlite_where=RARE,
    )
