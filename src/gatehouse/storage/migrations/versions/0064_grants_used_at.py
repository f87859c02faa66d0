"""When a token of a grant was last exchanged."""

from alembic import op
from sqlalchemy import BigInteger, Column, text

revision = "0064"
down_revision = "0063"


def upgrade() -> None:
    op.add_column("grants", Column("used_at", BigInteger, nullable=False, server_default=text("0")))
