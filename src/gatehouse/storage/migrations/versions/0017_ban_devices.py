"""A ban can cover the devices of a person."""

from alembic import op
from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Text

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "user_devices",
        Column("user_id", Text, nullable=False),
        Column("device", Text, nullable=False),
        Column("seen_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("user_id", "device", name="pk_user_devices"),
    )
    op.create_index("ix_user_devices_device", "user_devices", ["device"])
    op.create_index("ix_user_devices_seen_at", "user_devices", ["seen_at"])
    op.create_table(
        "ban_devices",
        Column("ban_id", Text, nullable=False),
        Column("device", Text, nullable=False),
        PrimaryKeyConstraint("ban_id", "device", name="pk_ban_devices"),
    )
    op.create_index("ix_ban_devices_device", "ban_devices", ["device"])
