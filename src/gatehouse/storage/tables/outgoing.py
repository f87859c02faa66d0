"""Emails, webhook deliveries and calls that wait to be sent."""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table

from gatehouse.storage.tables.columns import (
    document_column,
    flag_column,
    metadata,
    number_column,
    text_column,
    time_column,
)

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
    Index(None, "next_try_at"),
)


# Webhooks and their deliveries.


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


# Requests to applications about a person's data.


gdpr_requests = Table(  # a request to export or remove a person's data in applications (R6)
    "gdpr_requests",
    metadata,
    text_column("request_id", primary_key=True),
    text_column("kind"),
    text_column("user_id"),
    time_column("created_at"),
    time_column("ends_at"),  # when it is neither tried nor stored any longer
    Index(None, "user_id"),
    Index(None, "ends_at"),
)

gdpr_calls = Table(  # one address of one application to be called for such a request
    "gdpr_calls",
    metadata,
    text_column("request_id"),
    number_column("position"),
    Column("application_id", BigInteger, nullable=False),
    text_column("url"),
    text_column("state"),
    number_column("tries"),  # grows with every claim: a worker with an older count has lost it to another one
    time_column("next_try_at"),
    text_column("trouble"),
    time_column("done_at"),
    Column("sealed", LargeBinary),  # the answer, until it is collected
    PrimaryKeyConstraint("request_id", "position"),
    Index(None, "state", "next_try_at"),
)

gdpr_leases = Table(  # running calls: one per address in all processes
    "gdpr_leases",
    metadata,
    text_column("url", primary_key=True),
    text_column("request_id"),
    number_column("position"),
    number_column("tries"),
    time_column("ends_at"),
)
