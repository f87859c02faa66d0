"""Sessions and grants store which second factor was used."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    for table in ("sessions", "grants"):
        op.add_column(table, Column("second_factor", Text, nullable=False, server_default=text("''")))
