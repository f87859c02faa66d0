"""Signing keys."""

from sqlalchemy import Column, Index, LargeBinary, Table, text

from gatehouse.storage.tables.columns import metadata, text_column, time_column

signing_keys = Table(
    "signing_keys",
    metadata,
    text_column("kid", primary_key=True),
    text_column("purpose"),
    text_column("alg"),
    Column("public", LargeBinary, nullable=False),
    Column("sealed_private", LargeBinary, nullable=False),
    time_column("created_at"),
    time_column("signs_from"),
    time_column("signs_until"),
    time_column("verifies_until"),
    # At most one key per kind has no end yet: two nodes that rotate at once cannot both succeed.
    Index(
        "uq_signing_keys_open_end",
        "purpose",
        "alg",
        unique=True,
        postgresql_where=text("signs_until = 0"),
        sqlite_where=text("signs_until = 0"),
    ),
)
