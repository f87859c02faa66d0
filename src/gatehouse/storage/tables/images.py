"""Images: pictures of people and logos."""

from sqlalchemy import Column, Index, LargeBinary, Table, text

from gatehouse.storage.tables.columns import metadata, text_column, time_column

images = Table(
    "images",
    metadata,
    text_column(
        "owner", primary_key=True
    ),  # user:<id>, client:<id>, application:<id>, setting:<name>: one image each
    text_column("image_id"),  # SHA-256 of the content, in hex; equal images of two owners have the same
    text_column("media_type"),
    Column("content", LargeBinary, nullable=False),
    time_column("saved_at"),
    text_column("source", server_default=text("''")),  # the URL it was fetched from, or the digest of the upload
    Index(None, "image_id"),
)
