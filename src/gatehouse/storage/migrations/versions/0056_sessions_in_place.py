"""A session that is used is updated in place, in no index: the sweep has a time of its own, which rarely changes.

The time when a grant was made is the beginning of its ID, so it has no index of its own either.
"""

from alembic import op
from sqlalchemy import BigInteger, Column, text

revision = "0056"
down_revision = "0055"

TABLES = ("sessions", "last_seen")


def upgrade() -> None:
    # Of a node of the version before it is 0: the sweep looks at the session each time, until it has ended.
    op.add_column("sessions", Column("sweep_at", BigInteger, nullable=False, server_default=text("0")))
    op.execute(
        "UPDATE sessions SET sweep_at ="
        " CASE WHEN ends_at < idle_ends_at + 86400 THEN ends_at ELSE idle_ends_at + 86400 END"
    )
    op.drop_index("ix_sessions_ends_at", "sessions")
    op.drop_index("ix_sessions_idle_ends_at", "sessions")
    op.create_index("ix_sessions_sweep_at", "sessions", ["sweep_at"])
    op.drop_index("ix_grants_created_at", "grants")
    if op.get_bind().dialect.name == "postgresql":
        for table in TABLES:
            op.execute(f"ALTER TABLE {table} SET (fillfactor = 60)")  # of pages that are written from now on
