"""Grants name the redemption or rotation that changed them last."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("grants", Column("attempt", Text, nullable=False, server_default=text("''")))
