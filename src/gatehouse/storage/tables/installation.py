"""The installation itself: facts about it, single-use things, failed guesses."""

from sqlalchemy import Column, Index, LargeBinary, PrimaryKeyConstraint, Table

from gatehouse.storage.tables.columns import document_column, metadata, number_column, text_column, time_column

installation = Table(  # facts about this installation: base_url, master_key_check, setup_closed, epoch, timeline
    "installation",
    metadata,
    text_column("name", primary_key=True),
    text_column("value"),
)

once = Table(  # single-use things, under the digest of their secret
    "once",
    metadata,
    text_column("kind"),
    Column("digest", LargeBinary, nullable=False),
    text_column("subject"),
    document_column("details"),
    time_column("created_at"),
    time_column("expires_at"),
    time_column("taken_at"),
    PrimaryKeyConstraint("kind", "digest"),
    Index(None, "kind", "subject"),
    Index(None, "expires_at"),
)

attempts = Table(  # failed guesses, exact and surviving restarts (checklist LG-06, LG-13; defaults S-15)
    "attempts",
    metadata,
    text_column("subject", primary_key=True),  # a digest of who is counted
    number_column("failures"),
    time_column("first_at"),
    time_column("blocked_until"),
    Index(None, "blocked_until"),
)
