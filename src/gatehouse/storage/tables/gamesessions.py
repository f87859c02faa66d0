"""Game sessions."""

from sqlalchemy import Column, Index, LargeBinary, PrimaryKeyConstraint, Table, text

from gatehouse.storage.tables.columns import (
    UPDATED_IN_PLACE,
    flag_column,
    metadata,
    number_column,
    text_column,
    time_column,
)

game_sessions = Table(  # interface §2.2
    "game_sessions",
    metadata,
    text_column("gsid", primary_key=True),
    Column("location", LargeBinary, nullable=False),
    text_column("address"),
    flag_column("address_proven"),
    text_column("public_key"),
    text_column("code"),
    flag_column("code_shown"),
    text_column("distr"),
    number_column("app_id"),
    number_column("gapp_id"),
    Column("options", LargeBinary, nullable=False),
    text_column("state"),
    text_column("failure"),
    text_column("closed"),
    text_column("user_id"),
    number_column("rev"),
    text_column("auth"),
    text_column("guest_id", server_default=text("''")),  # who upgrades with this sign-in
    text_column("second_factor", server_default=text("''")),
    time_column("auth_time", server_default=text("0")),
    number_column("polls"),
    text_column("holder"),
    number_column("cancels"),
    time_column("created_at"),
    time_column("ends_at"),
    time_column("polled_at"),
    time_column("last_seen"),
    time_column("opened_at"),
    time_column("signing_in_at"),
    time_column("confirmed_at"),
    time_column("delivered_at"),
    time_column("closed_at"),
    Index(None, "ends_at"),
    Index(None, "user_id"),
    postgresql_with=UPDATED_IN_PLACE,
)

game_watchers = Table(  # nodes at which the owner of a game session has a socket open
    "game_watchers",
    metadata,
    text_column("gsid"),
    text_column("node"),
    time_column("seen_at"),
    PrimaryKeyConstraint("gsid", "node"),
    Index(None, "seen_at"),
)
