"""All tables: for migrations, backups and inspection."""

from gatehouse.storage.tables import (
    accounts,
    audit,
    gamesessions,
    images,
    installation,
    invitations,
    oauth,
    outgoing,
    permissions,
    personal_data,
    projects,
    saved_views,
    webhooks,
)
from gatehouse.storage.tables.columns import metadata

__all__ = [
    "accounts",
    "audit",
    "gamesessions",
    "images",
    "installation",
    "invitations",
    "metadata",
    "oauth",
    "outgoing",
    "permissions",
    "personal_data",
    "projects",
    "saved_views",
    "webhooks",
]
