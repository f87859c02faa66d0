"""Applications declare an API: its resource, scopes, and who may ask for them."""

from alembic import op
from sqlalchemy import Column, Text, text

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("applications", Column("api", Text))
    op.add_column("applications", Column("api_resource", Text))
    op.create_index(
        "uq_applications_api_resource",
        "applications",
        ["api_resource"],
        unique=True,
        postgresql_where=text("NOT removed"),
        sqlite_where=text("NOT removed"),
    )
