"""Grants store the authentication context class that their client required."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("grants", Column("acr", Text, nullable=False, server_default=text("''")))
