"""Clients that exist keep email and profile claims in their id_tokens, except those known by a document (R9)."""

from alembic import op
from sqlalchemy import Boolean, Column, text, true

revision = "0038"
down_revision = "0037"

# An ID with a scheme is the URL of a document; registered IDs contain no colon.
CLEAR_FOR_DOCUMENTS = text("UPDATE clients SET claims_in_id_token = FALSE WHERE client_id LIKE 'https://%'")


def upgrade() -> None:
    op.add_column("clients", Column("claims_in_id_token", Boolean, nullable=False, server_default=true()))
    op.get_bind().execute(CLEAR_FOR_DOCUMENTS)
