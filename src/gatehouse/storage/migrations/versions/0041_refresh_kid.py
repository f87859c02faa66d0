"""Grants name the key of their newest refresh token, with which a repeated refresh gets the same one (R2)."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    op.add_column("grants", Column("refresh_kid", Text, nullable=False, server_default=text("''")))
