"""Settings that administrators change while the service runs."""

from alembic import op
from sqlalchemy import BigInteger, Column, LargeBinary, PrimaryKeyConstraint, Text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "stored_settings",
        Column("name", Text, nullable=False),
        Column("value", Text),
        Column("sealed", LargeBinary),
        Column("changed_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("name", name="pk_stored_settings"),
    )
