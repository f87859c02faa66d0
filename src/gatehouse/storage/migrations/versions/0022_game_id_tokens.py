"""A game login can get an id_token for a client; it says how and when the person signed in."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Text, false, text

revision = "0022"
down_revision = "0019"


def upgrade() -> None:
    op.add_column("clients", Column("game_id_token", Boolean, nullable=False, server_default=false()))
    op.add_column("game_sessions", Column("second_factor", Text, nullable=False, server_default=text("''")))
    op.add_column("game_sessions", Column("auth_time", BigInteger, nullable=False, server_default=text("0")))
