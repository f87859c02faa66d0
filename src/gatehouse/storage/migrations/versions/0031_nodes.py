"""The running nodes, and the master keys each of them holds."""

from alembic import op
from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Text

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.create_table(
        "nodes",
        Column("node_id", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("master_keys", Text, nullable=False),
        Column("version", Text, nullable=False),
        Column("seen_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("node_id", name="pk_nodes"),
    )
