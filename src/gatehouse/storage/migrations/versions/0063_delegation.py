"""Clients that act for people, and consents that end."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, false, text

revision = "0063"
down_revision = "0062"


def upgrade() -> None:
    for name in ("may_act", "may_act_for_others"):
        op.add_column("clients", Column(name, Boolean, nullable=False, server_default=false()))
    op.add_column("consents", Column("ends_at", BigInteger, nullable=False, server_default=text("0")))
