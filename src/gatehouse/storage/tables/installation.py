"""The installation: its facts, single-use secrets, failed attempts, audit log."""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, LargeBinary, PrimaryKeyConstraint, Table, text

from gatehouse.storage.statements import JsonDocument
from gatehouse.storage.tables.columns import (
    Position,
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
    PrimaryKeyConstraint("kind", "digest"),
    Index(None, "kind", "subject"),
    Index(None, "expires_at"),
)

attempts = Table(  # failed guesses, exact and surviving restarts (checklist LG-06, LG-13; defaults S-15)
    "attempts",
    metadata,
    text_column("subject", primary_key=True),  # a digest of the counted subject
    number_column("failures"),
    time_column("first_at"),
    time_column("blocked_until"),
    Index(None, "blocked_until"),
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


# The audit log, what was refused, and what is counted by the hour.


RARE_EVENT_SQL: Final = (
    "event NOT IN ('game.confirmed', 'grant.made', 'login.done', 'session.ended', 'session.opened')"
)
OTHER_ACTOR_SQL: Final = "actor <> subject"

audit_events = Table(
    "audit_events",
    metadata,
    text_column("record_id", primary_key=True),
    time_column("at"),
    text_column("event"),
    text_column("actor"),
    text_column("subject"),
    text_column("request_id"),
    document_column("details"),
    Column("personal", JsonDocument),  # erasable; the commitment stays
    Column("salt", LargeBinary),
    Column("commitment", LargeBinary, nullable=False),
    Column("mac", LargeBinary, nullable=False),
    Column("place", BigInteger, unique=True),  # its number in the chain, once sealed
    Index(None, "subject", "at"),
    Index(None, "at"),
    # Frequent events (sign-ins, people changing their own account) are not in these two indexes; the others find
    # them.
    Index(
        "ix_audit_events_rare",
        "event",
        "at",
        postgresql_where=text(RARE_EVENT_SQL),
        sqlite_where=text(RARE_EVENT_SQL),
    ),
    Index(
        "ix_audit_events_by_others",
        "actor",
        "at",
        postgresql_where=text(OTHER_ACTOR_SQL),
        sqlite_where=text(OTHER_ACTOR_SQL),
    ),
    Index(
        "ix_audit_events_unsealed",
        "at",
        postgresql_where=text("place IS NULL"),
        sqlite_where=text("place IS NULL"),
    ),
)

audit_seals = Table(  # one signed head per sealed batch
    "audit_seals",
    metadata,
    Column("place", BigInteger, primary_key=True, autoincrement=False),
    time_column("at"),
    Column("link", LargeBinary, nullable=False),
    text_column("kid"),
    Column("signature", LargeBinary, nullable=False),
)

audit_refusals = Table(  # capped: the oldest go first
    "audit_refusals",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    text_column("record_id", unique=True),
    time_column("at"),
    text_column("event"),
    text_column("reason"),
    text_column("subject"),
    text_column("request_id"),
    document_column("details"),
    document_column("personal"),
    Index(None, "subject"),
    sqlite_autoincrement=True,
)

idempotency_keys = Table(  # requests that are answered once, and their answers
    "idempotency_keys",
    metadata,
    text_column("user_id"),
    number_column("through"),  # the application that vouches for the caller; 0 in person
    Column("key_digest", LargeBinary, nullable=False),
    Column("request_digest", LargeBinary, nullable=False),
    Column("sealed_answer", LargeBinary),  # none while the request runs
    time_column("ends_at"),
    PrimaryKeyConstraint("user_id", "through", "key_digest"),
    Index(None, "ends_at"),
)

tallies = Table(  # how often people signed in, by the hour
    "tallies",
    metadata,
    time_column("hour"),
    text_column("what"),
    number_column("times"),
    PrimaryKeyConstraint("hour", "what"),
)

sign_in_targets = Table(  # how often people signed in to each application or client, by the hour
    "sign_in_targets",
    metadata,
    time_column("hour"),
    text_column("target"),  # "application <id>" or "client <id>"
    number_column("times"),
    PrimaryKeyConstraint("hour", "target"),
)

active_people = Table(  # who signed in, by the hour, as sketches (kernel/sketches.py)
    "active_people",
    metadata,
    Column("hour", BigInteger, primary_key=True, autoincrement=False),
    Column("sketch", LargeBinary, nullable=False),
)
