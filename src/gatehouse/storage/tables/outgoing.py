"""Emails and text messages that wait to be sent."""

from sqlalchemy import Column, Index, LargeBinary, Table, text

from gatehouse.storage.tables.columns import metadata, number_column, text_column, time_column

outbox = Table(
    "outbox",
    metadata,
    text_column("mail_id", primary_key=True),
    Column("sealed", LargeBinary, nullable=False),  # address, subject and text, which may contain login links
    text_column("user_id"),  # the account it was written for; "" for none
    text_column("template"),
    time_column("created_at"),
    number_column("tries"),
    time_column("next_try_at"),
    text_column("trouble"),  # the result of the last try
    text_column("channel", server_default=text("'email'")),  # email | text
    Index(None, "next_try_at"),
)
