"""Sign-ins by application and active people, by the hour."""

from alembic import op
from sqlalchemy import BigInteger, Column, LargeBinary, PrimaryKeyConstraint, Text

revision = "0027"
down_revision = "0023"


def upgrade() -> None:
    op.create_table(
        "sign_in_targets",
        Column("hour", BigInteger, nullable=False),
        Column("target", Text, nullable=False),
        Column("times", BigInteger, nullable=False),
        PrimaryKeyConstraint("hour", "target", name="pk_sign_in_targets"),
    )
    op.create_table(
        "active_people",
        Column("hour", BigInteger, nullable=False, autoincrement=False),
        Column("sketch", LargeBinary, nullable=False),
        PrimaryKeyConstraint("hour", name="pk_active_people"),
    )
