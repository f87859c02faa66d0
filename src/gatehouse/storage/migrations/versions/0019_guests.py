"""Guests: retired keys of devices, IDs of merged guests, and who upgrades in a game session."""

from alembic import op
from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Text, text

revision = "0019"
down_revision = "0017"


def upgrade() -> None:
    op.create_index("ix_identities_provider_used_at", "identities", ["provider", "used_at"])
    op.create_table(
        "retired_device_keys",
        Column("subject", Text, nullable=False),
        Column("user_id", Text, nullable=False),
        Column("retired_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("subject", name="pk_retired_device_keys"),
    )
    op.create_index("ix_retired_device_keys_user_id", "retired_device_keys", ["user_id"])
    op.create_table(
        "user_aliases",
        Column("alias", Text, nullable=False),
        Column("user_id", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("ends_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("alias", name="pk_user_aliases"),
    )
    op.create_index("ix_user_aliases_user_id", "user_aliases", ["user_id"])
    op.create_index("ix_user_aliases_ends_at", "user_aliases", ["ends_at"])
    op.add_column("game_sessions", Column("guest_id", Text, nullable=False, server_default=text("''")))
