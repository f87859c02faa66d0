"""Clients of an application are found by an index: the page of a person reads them for each of their applications."""

from alembic import op

revision = "0057"
down_revision = "0056"


def upgrade() -> None:
    op.create_index("ix_clients_application_id", "clients", ["application_id"])
