"""Invitations carry a role or a group, until they are accepted."""

from alembic import op
from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Text

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    texts = ("user_id", "login", "inviter", "role", "project_id", "group_id", "invited_into")
    numbers = ("vouching_application_id", "application_id", "role_end", "created_at", "expires_at")
    op.create_table(
        "access_invitations",
        Column("invitation_id", Text, nullable=False),
        *(Column(name, Text, nullable=False) for name in texts),
        *(Column(name, BigInteger, nullable=False) for name in numbers),
        PrimaryKeyConstraint("invitation_id", name="pk_access_invitations"),
    )
    for name in ("user_id", "inviter", "invited_into", "expires_at"):
        op.create_index(f"ix_access_invitations_{name}", "access_invitations", [name])
