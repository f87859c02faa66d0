"""Proxies need not name the application where sites of two applications exist already; new ones must."""

from alembic import op
from sqlalchemy import text

revision = "0032"
down_revision = "0031"

APPLICATIONS = text("SELECT COUNT(DISTINCT application_id) FROM protected_sites")
KEEP_OFF = text(
    "INSERT INTO stored_settings (name, value, changed_at) VALUES ('forward_auth.require_application', 'false', 0)"
    " ON CONFLICT DO NOTHING"
)


def upgrade() -> None:
    there = op.get_bind()
    if there.execute(APPLICATIONS).scalar_one() > 1:
        there.execute(KEEP_OFF)
