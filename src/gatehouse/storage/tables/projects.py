"""Projects, their groups and service accounts."""

from sqlalchemy import BigInteger, Column, Index, PrimaryKeyConstraint, Table, UniqueConstraint, text

from gatehouse.storage.tables.columns import (
    UPDATED_IN_PLACE,
    document_column,
    flag_column,
    metadata,
    number_column,
    text_column,
    time_column,
)

projects = Table(
    "projects",
    metadata,
    text_column("project_id", primary_key=True),
    text_column("title"),
    text_column(
        "title_key", unique=True
    ),  # the id derived from its title, so that no two projects look alike (checklist PR-04)
    text_column("description"),
    document_column("tags"),
    document_column("allowed_domains"),
    document_column("allow"),
    document_column("disallow"),
    flag_column("removed"),
    text_column("author"),
    Column("application_id", BigInteger),
    time_column("created_at"),
    number_column("version"),
    # Grows with every change of the project, its groups, applications and connections: caches compare it.
    number_column("model_version", server_default=text("1")),
    Index(None, "author"),
    postgresql_with=UPDATED_IN_PLACE,
)

project_names = Table(  # ids and aliases, of removed projects too: one name, one project (R5)
    "project_names",
    metadata,
    text_column("name", primary_key=True),
    text_column("project_id"),
    number_column("position"),  # 0 is the id itself; aliases are numbered in their order
    Index(None, "project_id"),
)

project_services = Table(  # roles of a connected application, given to or taken from a group (R5)
    "project_services",
    metadata,
    text_column("project_id"),
    Column("application_id", BigInteger, nullable=False),
    number_column("position"),
    text_column("group_id"),  # "" in the one row of an application that is connected and grants nothing
    document_column("roles"),
    text_column("action"),
    PrimaryKeyConstraint("project_id", "application_id", "position"),
    Index(None, "application_id"),
)

# What the grants above give to whom: a project may grant a person roles of an application if the person has one of
# its keys there (permissions/model/index_keys.py). The application begins the key, so that every database finds rows
# by one column, whatever its statistics.
grant_keys = Table(
    "grant_keys",
    metadata,
    text_column("index_key"),
    text_column("project_id"),
    Column("application_id", BigInteger, nullable=False),
    PrimaryKeyConstraint("index_key", "project_id"),
    Index(None, "project_id"),
)

groups = Table(
    "groups",
    metadata,
    text_column("group_id", primary_key=True),
    text_column("project_id"),
    text_column("title"),
    text_column("title_key"),
    text_column("description"),
    document_column("tags"),
    document_column("conditions"),
    time_column("created_at"),
    number_column("version"),
    UniqueConstraint("project_id", "title_key"),
)

group_members = Table(  # members listed by id; others are members by condition
    "group_members",
    metadata,
    text_column("group_id"),
    text_column("user_id"),
    number_column("position"),
    PrimaryKeyConstraint("group_id", "user_id"),
    Index(None, "user_id"),
)

service_accounts = Table(
    "service_accounts",
    metadata,
    text_column("user_id", primary_key=True),
    text_column("project_id"),
    text_column("name"),
    text_column("comment"),
    document_column("ip_ranges"),
    text_column("public_key"),
    text_column("created_by"),
    time_column("created_at"),
    text_column("jti"),
    flag_column("revoked"),
    number_column("version"),
    UniqueConstraint("project_id", "name"),
)
