"""The installation: its facts, single-use secrets, failed attempts, signing keys."""

from sqlalchemy import Column, Index, LargeBinary, PrimaryKeyConstraint, Table, text

from gatehouse.storage.statements import JsonDocument
from gatehouse.storage.tables.columns import (
    UPDATED_IN_PLACE,
    document_column,
    metadata,
    number_column,
    text_column,
    time_column,
)

installation = Table(  # facts about this installation: base_url, master_key_check, setup_closed, epoch, timeline
    "installation",
    metadata,
    text_column("name", primary_key=True),
    text_column("value"),
    postgresql_with=UPDATED_IN_PLACE,
)

installation_epoch = Table(  # no account and no client has a lower `rev` (storage/epoch.py); without a row it is 0
    "installation_epoch",
    metadata,
    number_column("only_row", primary_key=True, autoincrement=False),
    number_column("epoch"),
)

nodes = Table(  # the running processes, which report themselves (app/nodes.py)
    "nodes",
    metadata,
    text_column("node_id", primary_key=True),
    text_column("name"),
    text_column("master_keys"),  # the ids of those it holds, the one it seals with first
    text_column("version"),
    time_column("seen_at"),  # by the clock of the database
)

stored_settings = Table(  # what administrators changed while the service runs (docs/decisions/0042)
    "stored_settings",
    metadata,
    text_column("name", primary_key=True),
    Column("value", JsonDocument),
    Column("sealed", LargeBinary),  # the value of a secret, which has no other
    time_column("changed_at"),
)

once = Table(  # single-use secrets, by their digest
    "once",
    metadata,
    text_column("kind"),
    Column("digest", LargeBinary, nullable=False),
    text_column("subject"),
    document_column("details"),
    time_column("created_at"),
    time_column("expires_at"),
    time_column("taken_at"),
    number_column(
        "epoch", server_default=text("0")
    ),  # the installation's when it was stored; with another one it ended
    PrimaryKeyConstraint("kind", "digest"),
    Index(None, "kind", "subject"),
    Index(None, "expires_at"),
    postgresql_with=UPDATED_IN_PLACE,
)

attempts = Table(  # failed guesses, exact and surviving restarts (checklist LG-06, LG-13; defaults S-15)
    "attempts",
    metadata,
    text_column("subject", primary_key=True),  # a digest of the counted subject
    number_column("failures"),
    time_column("first_at"),
    time_column("blocked_until"),
    Index(None, "blocked_until"),
    postgresql_with=UPDATED_IN_PLACE,
)


# Signing keys.


signing_keys = Table(
    "signing_keys",
    metadata,
    text_column("kid", primary_key=True),
    text_column("purpose"),
    text_column("alg"),
    Column("public", LargeBinary, nullable=False),
    Column("sealed_private", LargeBinary, nullable=False),
    time_column("created_at"),
    time_column("signs_from"),
    time_column("signs_until"),
    time_column("verifies_until"),
    # At most one key per kind has no end yet: two nodes that rotate at once cannot both succeed.
    Index(
        "uq_signing_keys_open_end",
        "purpose",
        "alg",
        unique=True,
        postgresql_where=text("signs_until = 0"),
        sqlite_where=text("signs_until = 0"),
    ),
)
