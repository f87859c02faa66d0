"""PostgreSQL has room to update rows in place, in tables whose rows change in columns without an index."""

from alembic import op

revision = "0046"
down_revision = "0045"

TABLES = (
    *("grants", "device_requests", "interactions", "game_sessions", "once", "attempts", "installation", "projects"),
    *("tallies", "sign_in_targets", "active_people"),
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in TABLES:
            op.execute(f"ALTER TABLE {table} SET (fillfactor = 60)")  # of pages that are written from now on
