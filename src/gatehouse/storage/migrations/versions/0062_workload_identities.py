"""Issuers whose tokens authenticate a client (RFC 7523)."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0062"
down_revision = "0061"


def upgrade() -> None:
    op.add_column("clients", Column("workload_identities", Text, nullable=False, server_default=text("'[]'")))
