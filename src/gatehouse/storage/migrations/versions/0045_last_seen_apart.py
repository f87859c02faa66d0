"""When people were last seen has rows of its own: a sign-in rewrites no account (docs/decisions/0060)."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    op.create_table(
        "last_seen",
        Column("user_id", Text, primary_key=True),
        Column("seen_at", BigInteger, nullable=False),
    )
    op.execute("INSERT INTO last_seen (user_id, seen_at) SELECT user_id, seen_at FROM users")
    op.create_index("ix_last_seen_seen_at", "last_seen", ["seen_at", "user_id"])
    op.drop_index("ix_users_seen_at", "users")
    op.drop_column("users", "seen_at")
