"""Unsealed audit records are found in the order in which they are sealed, also those of one second."""

from alembic import op
from sqlalchemy import text

revision = "0043"
down_revision = "0042"

UNSEALED = text("place IS NULL")
INDEX = "ix_audit_events_unsealed"


def upgrade() -> None:
    op.drop_index(INDEX, "audit_events")
    op.create_index(INDEX, "audit_events", ["at", "record_id"], postgresql_where=UNSEALED, sqlite_where=UNSEALED)
