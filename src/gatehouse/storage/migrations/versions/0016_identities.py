"""Accounts have identities at sign-in providers and game platforms."""

from alembic import op
from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Text

revision = "0016"
down_revision = "0015"

TEXTS = ("issuer", "subject", "user_id", "provider", "label")


def upgrade() -> None:
    op.create_table(
        "identities",
        *(Column(name, Text, nullable=False) for name in TEXTS),
        Column("created_at", BigInteger, nullable=False),
        Column("used_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("issuer", "subject", name="pk_identities"),
    )
    op.create_index("ix_identities_user_id", "identities", ["user_id"])
