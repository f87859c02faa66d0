"""When an account lost its address to the address's owner and ended (R10)."""

from alembic import op
from sqlalchemy import BigInteger, Column, text

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    op.add_column("users", Column("lost_at", BigInteger, nullable=False, server_default=text("0")))
    op.create_index(
        "ix_users_lost_at",
        "users",
        ["lost_at", "user_id"],
        postgresql_where=text("lost_at > 0"),
        sqlite_where=text("lost_at > 0"),
    )
