"""Tags and purchases have sources; housekeeping finds those of earlier ones, because it knows the rules."""

from alembic import op
from sqlalchemy import Boolean, Column, PrimaryKeyConstraint, Text, false, text

revision = "0040"
down_revision = "0039"

# Until housekeeping has found the sources of earlier tags and purchases.
NOTE_MISSING_SOURCES = text(
    "INSERT INTO installation (name, value) SELECT 'label_sources', 'missing'"
    " WHERE EXISTS (SELECT 1 FROM identities WHERE provider <> 'guest')"
)


def upgrade() -> None:
    add_sources("user_tags", "tag", Column("kept", Boolean, nullable=False, server_default=false()))
    add_sources("user_purchases", "purchase")
    op.create_index("ix_user_tags_tag_user_id", "user_tags", ["tag", "user_id"])
    op.create_index("ix_user_purchases_purchase", "user_purchases", ["purchase"])
    for table, label in (("user_tags", "tag"), ("user_purchases", "purchase")):
        op.create_index(
            f"ix_{table}_provider",
            table,
            ["provider", label],
            postgresql_where=text("provider <> ''"),
            sqlite_where=text("provider <> ''"),
        )
    op.create_index(
        "ix_user_tags_kept",
        "user_tags",
        ["issuer", "subject"],
        postgresql_where=text("kept IS true"),
        sqlite_where=text("kept IS 1"),
    )
    op.get_bind().execute(NOTE_MISSING_SOURCES)


def add_sources(table: str, label: str, *more: Column[bool]) -> None:
    """Make the source part of the primary key, in a new table: SQLite cannot change the key of one."""
    there, former = op.get_bind(), f"former_{table}"
    op.rename_table(table, former)
    if there.dialect.name == "postgresql":  # index names are unique there
        there.execute(text(f"ALTER INDEX pk_{table} RENAME TO pk_{former}"))
    op.create_table(
        table,
        Column("user_id", Text, nullable=False),
        Column(label, Text, nullable=False),
        *(
            Column(name, Text, nullable=False, server_default=text("''"))
            for name in ("issuer", "subject", "provider")
        ),
        *more,
        PrimaryKeyConstraint("user_id", label, "issuer", "subject", name=f"pk_{table}"),
    )
    there.execute(text(f"INSERT INTO {table} (user_id, {label}) SELECT user_id, {label} FROM {former}"))  # noqa: S608
    op.drop_table(former)  # and its indexes
