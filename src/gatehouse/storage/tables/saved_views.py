"""Views of lists of the console that people saved for themselves."""

from sqlalchemy import PrimaryKeyConstraint, Table

from gatehouse.storage.tables.columns import metadata, text_column, time_column

saved_views = Table(
    "saved_views",
    metadata,
    text_column("user_id"),
    text_column("list"),
    text_column("name"),
    text_column("query"),  # of the list's address
    time_column("created_at"),
    PrimaryKeyConstraint("user_id", "list", "name"),
)
