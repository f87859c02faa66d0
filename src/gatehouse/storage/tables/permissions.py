"""Applications and user records."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
    true,
)

from gatehouse.storage.statements import JsonDocument
from gatehouse.storage.tables.columns import (
    document_column,
    flag_column,
    metadata,
    number_column,
    text_column,
    time_column,
)

application_ids = Table(  # every id ever used; never reused (R5)
    "application_ids",
    metadata,
    Column("application_id", BigInteger, primary_key=True, autoincrement=False),
    Column("api_resource", Text),  # of an application that was deleted with its project: no other may declare it
)

applications = Table(
    "applications",
    metadata,
    Column("application_id", BigInteger, primary_key=True, autoincrement=False),
    text_column("name"),
    text_column("description"),
    Column("project_id", Text),
    flag_column("removed"),
    flag_column("accepts_sample_factor", server_default=true()),  # applications from before this column
    document_column("settings"),
    document_column("service_meta"),  # without private_key
    Column("sealed_private_key", LargeBinary),  # service_meta.private_key: stored, never returned
    Column("api", JsonDocument),
    Column("api_resource", Text),  # api.resource
    time_column("created_at"),
    number_column("version"),
    text_column("logo", server_default=text("''")),  # ID of the image, if there is one
    # Names are unique in a project (interface §4.6); a removed application gives its name free.
    Index(
        "uq_applications_name_in_project",
        "project_id",
        "name",
        unique=True,
        postgresql_where=text("NOT removed"),
        sqlite_where=text("NOT removed"),
    ),
    Index(None, "project_id"),  # the index above is used only by queries with exactly its condition
    # A removed application gives its resource free, to its own project (applications.py).
    Index(
        "uq_applications_api_resource",
        "api_resource",
        unique=True,
        postgresql_where=text("NOT removed"),
        sqlite_where=text("NOT removed"),
    ),
)

protected_sites = Table(  # the origins that reverse proxies protect with this service (R9)
    "protected_sites",
    metadata,
    text_column("origin", primary_key=True),
    Column("application_id", BigInteger, nullable=False),
    text_column("rule"),
    Index(None, "application_id"),
)

access_keys = Table(
    "access_keys",
    metadata,
    text_column("key_id", primary_key=True),
    Column("application_id", BigInteger, nullable=False),
    number_column("slot"),  # two slots: the limit is a constraint (interface §8)
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("sealed", LargeBinary, nullable=False),
    text_column("comment"),
    time_column("created_at"),
    time_column("modified_at"),
    time_column("last_used"),
    UniqueConstraint("application_id", "slot"),
)

application_keys = Table(  # public keys applications sign their own service JWTs with
    "application_keys",
    metadata,
    text_column("kid", primary_key=True),
    Column("application_id", BigInteger, nullable=False),
    text_column("source"),  # service_meta | custom
    text_column("pem"),
    time_column("created_at"),
    Index(None, "application_id"),
)

service_tokens = Table(  # static service JWTs
    "service_tokens",
    metadata,
    text_column("jti", primary_key=True),
    Column("application_id", BigInteger, nullable=False),
    text_column("comment"),
    time_column("created_at"),
    time_column("ends_at"),
    flag_column("revoked"),
    number_column("epoch", server_default=text("0")),  # the installation's when it was issued; it ends with it
    Index(None, "application_id"),
    Index(None, "ends_at"),
)

email_secrets = Table(  # a caller with one may see login emails of the application's users (`with_email`, R1)
    "email_secrets",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    time_column("created_at"),
    PrimaryKeyConstraint("application_id", "digest"),
)

application_schemas = Table(
    "application_schemas",
    metadata,
    Column("application_id", BigInteger, primary_key=True, autoincrement=False),
    document_column("login"),
    document_column("private_data"),
    document_column("public_data"),
    document_column("secret_data"),
    number_column("version"),
    time_column("updated_at"),
    Column("objects", JsonDocument, nullable=False, server_default=text("'{}'")),  # object types
)

schema_versions = Table(  # every save of a schema and its roles, bounded by count and bytes for each application
    "schema_versions",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    number_column("version"),
    time_column("saved_at"),
    text_column("actor"),  # the actor as in the audit log; "" for the state before any save
    document_column("changes"),  # the number of changes since the previous version
    Column("replaced", LargeBinary),  # what the next save replaced of it, compressed; NULL in the newest version
    PrimaryKeyConstraint("application_id", "version"),
)

roles = Table(
    "roles",
    metadata,
    Column("application_id", BigInteger, ForeignKey("applications.application_id"), nullable=False),
    text_column("role_key"),  # lower case: names are unique ignoring case (R5)
    text_column("name"),
    text_column("description"),
    flag_column("protected"),
    flag_column("is_default"),
    Column("condition", JsonDocument),
    text_column("condition_mode"),
    number_column("user_limit"),
    text_column("params"),
    document_column("meta"),
    number_column("version"),
    number_column("generation", server_default=text("0")),  # what is held on objects names it
    PrimaryKeyConstraint("application_id", "role_key"),
)


# What is written for one user in one application.


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
    Index(None, "project_id", "application_id"),  # Assignments that end soon; few assignments have an end.
    Index(
        "ix_role_assignments_ending",
        "expired",
        postgresql_where=text("expired > 0"),
        sqlite_where=text("expired > 0"),
    ),
)
