"""Objects of applications, and what is held on them (R12)."""

from sqlalchemy import BigInteger, Column, Index, PrimaryKeyConstraint, Table, Text

from gatehouse.storage.tables.columns import flag_column, metadata, number_column, text_column, time_column

BYTEWISE_TEXT = Text().with_variant(Text(collation="C"), "postgresql")  # SQLite compares byte by byte anyway

objects = Table(
    "objects",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    Column("object_key", BYTEWISE_TEXT, nullable=False),  # type:id
    text_column("object_type"),
    Column("path", BYTEWISE_TEXT, nullable=False),  # place, ancestors from the top, itself
    text_column("title"),
    number_column("version"),
    PrimaryKeyConstraint("application_id", "object_key"),
    Index(None, "application_id", "object_type", "path"),
)

object_holders = Table(
    "object_holders",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    Column("path", BYTEWISE_TEXT, nullable=False),  # of the object
    Column("holder", BYTEWISE_TEXT, nullable=False),  # u:person or g:group
    Column("item", BYTEWISE_TEXT, nullable=False),  # r:role or p:rule
    flag_column("value"),  # false: the role is revoked, the rule denied
    time_column("expired"),
    number_column("generation"),  # of the role
    PrimaryKeyConstraint("application_id", "path", "holder", "item"),
    Index(None, "holder", "application_id", "path"),
)
