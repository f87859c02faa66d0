"""A promotion and a restore end everything by one number, and write no account (docs/decisions/0011)."""

from alembic import op
from sqlalchemy import BigInteger, Column, text

revision = "0044"
down_revision = "0043"

EVER_ENDED = text("rev > 0")


def upgrade() -> None:
    op.create_table(
        "installation_epoch",
        Column("only_row", BigInteger, primary_key=True, autoincrement=False),
        Column("epoch", BigInteger, nullable=False),
    )
    for table in ("once", "service_tokens"):
        op.add_column(table, Column("epoch", BigInteger, nullable=False, server_default=text("0")))
    # Before, these ended by the time of the last restore or promotion.
    op.execute(
        "UPDATE service_tokens SET epoch = -1 WHERE (created_at + 1) * 1000 <="
        " (SELECT CAST(value AS bigint) FROM installation WHERE name = 'epoch')"
    )
    op.execute("DELETE FROM installation WHERE name = 'epoch'")
    op.create_index("ix_users_rev", "users", ["rev"], postgresql_where=EVER_ENDED, sqlite_where=EVER_ENDED)
    op.create_index("ix_clients_rev", "clients", ["rev"])
