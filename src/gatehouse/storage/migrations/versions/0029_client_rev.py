"""A client has a revocation epoch: tokens that it got for itself end with it, as those of accounts do."""

from alembic import op
from sqlalchemy import BigInteger, Column, text

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.add_column("clients", Column("rev", BigInteger, nullable=False, server_default=text("0")))
    op.execute(text("UPDATE clients SET rev = created_at * 1000"))
