"""Webhooks and their deliveries."""

from sqlalchemy import Column, Index, Integer, LargeBinary, Table

from gatehouse.storage.tables.columns import (
    document_column,
    flag_column,
    metadata,
    number_column,
    text_column,
    time_column,
)

webhooks = Table(  # addresses that receive events
    "webhooks",
    metadata,
    text_column("webhook_id", primary_key=True),
    Column("slot", Integer, nullable=False, unique=True),  # below WEBHOOKS_MOST: there are no more than that
    text_column("url"),
    text_column("description"),
    document_column("topics"),
    flag_column("enabled"),
    number_column("place"),  # of the last sealed audit record that was read for it
    number_column("given_up"),  # deliveries, one after the other
    time_column("stopped_at"),  # when the service disabled it
    Column("sealed_secret", LargeBinary, nullable=False),
    Column("sealed_old_secret", LargeBinary),
    time_column("old_secret_ends_at"),
    text_column("created_by"),
    time_column("created_at"),
    number_column("version"),
)

webhook_deliveries = Table(  # pending webhook deliveries, and the log of finished ones
    "webhook_deliveries",
    metadata,
    text_column("delivery_id", primary_key=True),
    text_column("webhook_id"),
    text_column("event_id"),
    text_column("event"),
    number_column("place"),
    text_column("body"),
    text_column("state"),
    number_column("tries"),  # grows with every claim, like that of gdpr_calls
    time_column("next_try_at"),
    time_column("held_until"),
    time_column("ends_at"),
    number_column("status"),
    number_column("duration_ms"),
    text_column("trouble"),
    time_column("created_at"),
    time_column("done_at"),
    Index(None, "webhook_id", "state", "next_try_at"),
    Index(None, "webhook_id", "created_at"),
    Index(None, "created_at"),
)
