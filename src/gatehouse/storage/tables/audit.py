"""The audit log, what was refused, and what is counted by the hour."""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, LargeBinary, PrimaryKeyConstraint, Table, text

from gatehouse.storage.statements import JsonDocument
from gatehouse.storage.tables.columns import (
    UPDATED_IN_PLACE,
    Position,
    document_column,
    metadata,
    number_column,
    text_column,
    time_column,
)

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
    # Frequent events (sign-ins, people changing their own account) are not in these indexes; the others find
    # them.
    Index(
        "ix_audit_events_rare",
        "event",
        "at",
        postgresql_where=text(RARE_EVENT_SQL),
        sqlite_where=text(RARE_EVENT_SQL),
    ),
    Index(
        "ix_audit_events_about",
        "subject",
        "at",
        "record_id",
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
        "record_id",
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
    postgresql_with=UPDATED_IN_PLACE,
)

sign_in_targets = Table(  # how often people signed in to each application or client, by the hour
    "sign_in_targets",
    metadata,
    time_column("hour"),
    text_column("target"),  # "application <id>" or "client <id>"
    number_column("times"),
    PrimaryKeyConstraint("hour", "target"),
    postgresql_with=UPDATED_IN_PLACE,
)

active_people = Table(  # who signed in, by the hour, as sketches (kernel/sketches.py)
    "active_people",
    metadata,
    Column("hour", BigInteger, primary_key=True, autoincrement=False),
    Column("sketch", LargeBinary, nullable=False),
    postgresql_with=UPDATED_IN_PLACE,
)
