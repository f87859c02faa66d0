"""What a session was made with, and which browser chose a password at its registration (R10)."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    op.add_column("users", Column("password_browser", Text, nullable=False, server_default=text("''")))
    op.add_column("sessions", Column("proved", Text, nullable=False, server_default=text("'[]'")))
