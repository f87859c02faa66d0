"""Requests to applications about a person's data."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, PrimaryKeyConstraint, Table

from gatehouse.storage.tables.columns import metadata, number_column, text_column, time_column

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
