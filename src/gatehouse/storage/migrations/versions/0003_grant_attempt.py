"""Grants name the redemption or rotation that changed them last."""

from alembic import op
from sqlalchemy import Column, Text, inspect, text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    if any(column["name"] == "attempt" for column in inspect(op.get_bind()).get_columns("grants")):
        return  # a database that was made when 0001 had all tables as they stood
    op.add_column("grants", Column("attempt", Text, nullable=False, server_default=text("''")))


def downgrade() -> None:
    op.drop_column("grants", "attempt")
