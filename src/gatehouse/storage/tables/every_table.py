"""All tables: for migrations, backups and inspection."""

from gatehouse.storage.tables import (
    accounts,
    audit,
    gamesessions,
    images,
    installation,
    invitations,
    oauth,
    objects,
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
    "objects",
    "outgoing",
    "permissions",
    "personal_data",
    "projects",
    "saved_views",
    "webhooks",
]
