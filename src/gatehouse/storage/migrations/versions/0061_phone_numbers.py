"""Phone numbers of accounts, counted messages and wrong codes, and text messages in the outbox."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, PrimaryKeyConstraint, Text, false, text

revision = "0061"
down_revision = "0060"


def upgrade() -> None:
    op.add_column("users", Column("phone", Text, nullable=False, server_default=text("''")))
    for flag in ("phone_code", "phone_closed"):
        op.add_column("users", Column(flag, Boolean, nullable=False, server_default=false()))
    op.create_index(
        "uq_users_phone",
        "users",
        ["phone"],
        unique=True,
        postgresql_where=text("phone_verified IS true AND phone <> ''"),
        sqlite_where=text("phone_verified IS 1 AND phone <> ''"),
    )
    op.create_table(
        "phone_events",
        *(Column(name, Text, nullable=False) for name in ("event_id", "kind")),
        Column("at", BigInteger, nullable=False),
        *(Column(name, Text, nullable=False) for name in ("user_id", "number_key", "network")),
        PrimaryKeyConstraint("event_id", name="pk_phone_events"),
    )
    op.create_index("ix_phone_events_at", "phone_events", ["at"])
    op.create_index("ix_phone_events_number_key_at", "phone_events", ["number_key", "at"])
    op.create_index("ix_phone_events_user_id_kind_at", "phone_events", ["user_id", "kind", "at"])
    op.create_index("ix_phone_events_network_at", "phone_events", ["network", "at"])
    op.add_column("outbox", Column("channel", Text, nullable=False, server_default=text("'email'")))
