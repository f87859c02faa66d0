"""Bans find other accounts of a person by digests, and are copied to them."""

from alembic import op
from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Text, text

revision = "0034"
down_revision = "0033"

ADMINISTRATOR = 3  # only administrators ban from the installation; the rank of other authors is not known
RANK_AUTHORS = text("UPDATE bans SET author_rank = :rank WHERE application_id = 0 AND project_id = ''")
MOVE_DEVICES = text(
    "INSERT INTO ban_digests (ban_id, kind, digest, ends_at) SELECT ban_id, 'device', device, 0 FROM ban_devices"
)


def upgrade() -> None:
    op.add_column("bans", Column("author_rank", BigInteger, nullable=False, server_default=text("0")))
    op.add_column("bans", Column("source", Text, nullable=False, server_default=text("''")))
    op.add_column("bans", Column("erased_at", BigInteger, nullable=False, server_default=text("0")))
    op.create_index("ix_bans_source", "bans", ["source"])
    op.create_table(
        "ban_digests",
        Column("ban_id", Text, nullable=False),
        Column("kind", Text, nullable=False),
        Column("digest", Text, nullable=False),
        Column("ends_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("ban_id", "kind", "digest", name="pk_ban_digests"),
    )
    op.create_index("ix_ban_digests_kind_digest", "ban_digests", ["kind", "digest"])
    there = op.get_bind()
    there.execute(RANK_AUTHORS, {"rank": ADMINISTRATOR})
    there.execute(MOVE_DEVICES)
    op.drop_table("ban_devices")
