"""The schema of both databases, with one module per package.

Times are Unix seconds as integers; 0 stands for "no end" and "never", as on the wire. Everything that must be unique,
single use or limited is a constraint here, never a count in the code. Importing this package fills `metadata` with
all tables.
"""

from gatehouse.storage.tables import (
    accounts,
    gamesessions,
    images,
    installation,
    oauth,
    outgoing,
    permissions,
    saved_views,
)
from gatehouse.storage.tables.columns import metadata

__all__ = [
    "accounts",
    "gamesessions",
    "images",
    "installation",
    "metadata",
    "oauth",
    "outgoing",
    "permissions",
    "saved_views",
]
