"""Applications have a logo, and images know what they were made from."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0015"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("applications", Column("logo", Text, nullable=False, server_default=text("''")))
    op.add_column("images", Column("source", Text, nullable=False, server_default=text("''")))
