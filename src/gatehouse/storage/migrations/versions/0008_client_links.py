"""Clients have links that people see: website, privacy policy, terms of service."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    for name in ("client_uri", "policy_uri", "tos_uri"):
        op.add_column("clients", Column(name, Text, nullable=False, server_default=text("''")))
