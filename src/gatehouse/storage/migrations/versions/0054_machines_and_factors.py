"""A client may be a machine, and applications from before this refuse no fixed factor (R9, R2)."""

from alembic import op
from sqlalchemy import Boolean, Column, false, true

revision = "0054"
down_revision = "0052"


def upgrade() -> None:
    op.add_column("clients", Column("machine", Boolean, nullable=False, server_default=false()))
    op.add_column("applications", Column("accepts_sample_factor", Boolean, nullable=False, server_default=true()))
