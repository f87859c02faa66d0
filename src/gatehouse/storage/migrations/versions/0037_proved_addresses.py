"""Addresses of people who registered here and proved them by email are marked as such (R10)."""

from alembic import op
from sqlalchemy import text

revision = "0037"
down_revision = "0036"

# JSON is stored as text, without spaces.
MARK = text(
    """UPDATE users SET meta = replace(meta, '"joined":"registered"', '"joined":"proved"')"""
    """ WHERE email_verified AND meta LIKE '%"joined":"registered"%'"""
)


def upgrade() -> None:
    op.get_bind().execute(MARK)
