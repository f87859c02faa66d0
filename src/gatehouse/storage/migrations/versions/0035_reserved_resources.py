"""The API resource of a deleted application stays reserved."""

from alembic import op
from sqlalchemy import Column, Text

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    op.add_column("application_ids", Column("api_resource", Text))
