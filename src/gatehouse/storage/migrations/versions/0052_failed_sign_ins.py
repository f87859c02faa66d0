"""Failed sign-ins, counted by account, reason, network and hour."""

from alembic import op
from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Text

revision = "0052"
down_revision = "0050"


def upgrade() -> None:
    op.create_table(
        "failed_sign_ins",
        Column("user_id", Text, nullable=False),
        Column("hour", BigInteger, nullable=False),
        Column("reason", Text, nullable=False),
        Column("network", Text, nullable=False),
        Column("times", BigInteger, nullable=False),
        PrimaryKeyConstraint("user_id", "hour", "reason", "network", name="pk_failed_sign_ins"),
    )
    op.create_index("ix_failed_sign_ins_hour", "failed_sign_ins", ["hour"])
