"""Objects of applications, and what is held on them (R12)."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, PrimaryKeyConstraint, Text, text

revision = "0066"
down_revision = "0065"


def upgrade() -> None:
    bytewise = Text(collation="C") if op.get_bind().dialect.name == "postgresql" else Text()
    op.add_column("roles", Column("generation", BigInteger, nullable=False, server_default=text("0")))
    op.create_table(
        "objects",
        Column("application_id", BigInteger, nullable=False),
        Column("object_key", bytewise, nullable=False),
        Column("object_type", Text, nullable=False),
        Column("path", bytewise, nullable=False),
        Column("title", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        PrimaryKeyConstraint("application_id", "object_key", name="pk_objects"),
    )
    op.create_index(
        "ix_objects_application_id_object_type_path", "objects", ["application_id", "object_type", "path"]
    )
    op.create_table(
        "object_holders",
        Column("application_id", BigInteger, nullable=False),
        Column("path", bytewise, nullable=False),
        Column("holder", bytewise, nullable=False),
        Column("item", bytewise, nullable=False),
        Column("value", Boolean, nullable=False),
        Column("expired", BigInteger, nullable=False),
        Column("generation", BigInteger, nullable=False),
        PrimaryKeyConstraint("application_id", "path", "holder", "item", name="pk_object_holders"),
    )
    op.create_index(
        "ix_object_holders_holder_application_id_path", "object_holders", ["holder", "application_id", "path"]
    )
