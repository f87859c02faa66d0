"""Clients have a logo."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("clients", Column("logo", Text, nullable=False, server_default=text("''")))
