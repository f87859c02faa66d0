"""Authorization requests that clients push, and clients that must push theirs (RFC 9126)."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, LargeBinary, PrimaryKeyConstraint, Text, false

revision = "0060"
down_revision = "0057"


def upgrade() -> None:
    op.add_column(
        "clients",
        Column("require_pushed_authorization_requests", Boolean, nullable=False, server_default=false()),
    )
    op.create_table(
        "pushed_requests",
        Column("digest", LargeBinary, nullable=False),
        *(Column(name, Text, nullable=False) for name in ("client_id", "source", "request")),
        *(Column(name, BigInteger, nullable=False) for name in ("epoch", "created_at", "ends_at")),
        PrimaryKeyConstraint("digest", name="pk_pushed_requests"),
    )
    op.create_index("ix_pushed_requests_client_id_source", "pushed_requests", ["client_id", "source"])
    op.create_index("ix_pushed_requests_ends_at", "pushed_requests", ["ends_at"])
