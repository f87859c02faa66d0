"""Sites that reverse proxies protect, and people's sessions on them."""

from alembic import op
from sqlalchemy import BigInteger, Column, LargeBinary, PrimaryKeyConstraint, Text

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "protected_sites",
        Column("origin", Text, nullable=False),
        Column("application_id", BigInteger, nullable=False),
        Column("rule", Text, nullable=False),
        PrimaryKeyConstraint("origin", name="pk_protected_sites"),
    )
    op.create_index("ix_protected_sites_application_id", "protected_sites", ["application_id"])
    op.create_table(
        "site_sessions",
        Column("digest", LargeBinary, nullable=False),
        Column("origin", Text, nullable=False),
        Column("user_id", Text, nullable=False),
        Column("rev", BigInteger, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("ends_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("digest", name="pk_site_sessions"),
    )
    op.create_index("ix_site_sessions_user_id", "site_sessions", ["user_id"])
    op.create_index("ix_site_sessions_ends_at", "site_sessions", ["ends_at"])
