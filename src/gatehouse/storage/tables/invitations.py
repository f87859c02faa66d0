"""Invitations to hold a role or to join a group, until they are accepted, and whom to invite."""

from sqlalchemy import BigInteger, Column, Index, Table

from gatehouse.storage.tables.columns import metadata, text_column, time_column

access_invitations = Table(
    "access_invitations",
    metadata,
    text_column("invitation_id", primary_key=True),
    text_column("user_id"),
    text_column("login"),
    text_column("inviter"),
    Column("vouching_application_id", BigInteger, nullable=False),
    Column("application_id", BigInteger, nullable=False),
    text_column("role"),
    time_column("role_end"),
    text_column("project_id"),
    text_column("group_id"),
    text_column("invited_into"),
    time_column("created_at"),
    time_column("expires_at"),
    Index(None, "user_id"),
    Index(None, "inviter"),
    Index(None, "invited_into"),
    Index(None, "expires_at"),
)

imported_people = Table(  # those whom an import gave no password
    "imported_people",
    metadata,
    text_column("user_id", primary_key=True),
    text_column("import_id"),
    Index("ix_imported_people_import_id", "import_id", "user_id"),
)
