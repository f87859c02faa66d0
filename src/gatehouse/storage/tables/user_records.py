"""What is written for one user in one application."""

from sqlalchemy import BigInteger, Column, Index, PrimaryKeyConstraint, Table, UniqueConstraint, text

from gatehouse.storage.tables.columns import document_column, metadata, number_column, text_column, time_column

user_records = Table(  # what is written directly into one user's schema of one application
    "user_records",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    text_column("user_id"),
    document_column("login"),
    document_column("private_data"),
    document_column("public_data"),
    document_column("secret_data"),
    number_column("version"),
    PrimaryKeyConstraint("application_id", "user_id"),
    Index(None, "user_id"),
)

scope_records = Table(  # direct entries of one user in one project or on one of its resources
    "scope_records",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    text_column("user_id"),
    text_column("project_id"),
    text_column("resource_kind"),  # "", applications, services, groups
    text_column("resource_id"),
    document_column("private_data"),
    document_column("public_data"),
    PrimaryKeyConstraint("application_id", "user_id", "project_id", "resource_kind", "resource_id"),
    Index(None, "project_id"),
    Index(None, "user_id"),
)

role_assignments = Table(
    "role_assignments",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    text_column("user_id"),
    text_column("project_id"),  # "" at the root
    text_column("resource_kind"),  # "", applications, services, groups
    text_column("resource_id"),
    text_column("role_key"),
    number_column("position"),  # as stored: parameters merge in this order (R5)
    time_column("expired"),
    number_column("ttl"),
    PrimaryKeyConstraint("application_id", "user_id", "project_id", "resource_kind", "resource_id", "role_key"),
    UniqueConstraint("application_id", "user_id", "project_id", "resource_kind", "resource_id", "position"),
    Index(None, "application_id", "role_key", "user_id"),
    Index(None, "user_id"),
    Index(None, "project_id", "application_id"),  # What ends soon: few of many assignments ever do.
    Index(
        "ix_role_assignments_ending",
        "expired",
        postgresql_where=text("expired > 0"),
        sqlite_where=text("expired > 0"),
    ),
)
