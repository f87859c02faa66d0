"""Documents that people accepted."""

from alembic import op
from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Text

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_table(
        "accepted_terms",
        Column("user_id", Text, nullable=False),
        Column("document", Text, nullable=False),
        Column("version", Text, nullable=False),
        Column("accepted_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("user_id", "document", "version", name="pk_accepted_terms"),
    )
