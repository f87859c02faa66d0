"""Accounts have a profile: names, a user name, a time zone and a picture."""

from alembic import op
from sqlalchemy import BigInteger, Column, LargeBinary, PrimaryKeyConstraint, Text, text

revision = "0004"
down_revision = "0003"

TEXTS = ("name", "given_name", "family_name", "zoneinfo", "picture")
TIMES = ("username_at", "updated_at")


def upgrade() -> None:
    for name in TEXTS:
        op.add_column("users", Column(name, Text, nullable=False, server_default=text("''")))
    for name in TIMES:
        op.add_column("users", Column(name, BigInteger, nullable=False, server_default=text("0")))
    op.add_column("users", Column("username", Text))
    op.create_index("uq_users_username", "users", ["username"], unique=True)
    op.create_table(
        "usernames",
        Column("digest", Text, nullable=False),
        Column("user_id", Text, nullable=False),
        PrimaryKeyConstraint("digest", name="pk_usernames"),
    )
    op.create_index("ix_usernames_user_id", "usernames", ["user_id"])
    op.create_table(
        "images",
        Column("owner", Text, nullable=False),
        Column("image_id", Text, nullable=False),
        Column("media_type", Text, nullable=False),
        Column("content", LargeBinary, nullable=False),
        Column("saved_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("owner", name="pk_images"),
    )
    op.create_index("ix_images_image_id", "images", ["image_id"])
