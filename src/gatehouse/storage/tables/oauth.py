"""OAuth clients, grants and consents, and back-channel logout calls."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, PrimaryKeyConstraint, Table, Text, false, text, true

from gatehouse.storage.statements import JsonDocument
from gatehouse.storage.tables.columns import (
    UPDATED_IN_PLACE,
    document_column,
    flag_column,
    metadata,
    number_column,
    text_column,
    time_column,
)

clients = Table(
    "clients",
    metadata,
    text_column("client_id", primary_key=True),
    Column("application_id", BigInteger),
    text_column("name"),
    text_column("profile"),
    document_column("redirect_hosts"),
    document_column("redirect_uris"),
    document_column("post_logout_uris"),
    document_column("scopes"),
    document_column("origins"),
    text_column("backchannel_logout_uri"),
    *(text_column(name, server_default=text("''")) for name in ("client_uri", "policy_uri", "tos_uri")),
    text_column("logo", server_default=text("''")),  # ID of the image, if there is one
    document_column("jwks"),
    Column("workload_identities", JsonDocument, nullable=False, server_default=text("'[]'")),
    document_column("claims"),
    document_column("token_settings"),
    flag_column("claims_in_id_token", server_default=true()),  # clients from before this column
    flag_column("device_grant"),
    flag_column("game_id_token", server_default=false()),
    flag_column("explain_errors"),
    flag_column("first_party"),
    flag_column("may_exchange"),
    flag_column("may_act", server_default=false()),
    flag_column("may_act_for_others", server_default=false()),
    flag_column("require_pkce"),
    flag_column("require_pushed_authorization_requests", server_default=false()),
    flag_column("public"),
    flag_column("machine", server_default=false()),
    flag_column("removed"),
    time_column("created_at"),
    number_column("version"),
    Column("rev", BigInteger, nullable=False, server_default=text("0")),
    Index(None, "application_id"),
    Index("ix_clients_rev", "rev"),  # for the highest one (storage/epoch.py)
)

client_origins = Table(  # `origins` of clients that are not removed, by origin: a preflight names no client
    "client_origins",
    metadata,
    text_column("origin"),
    text_column("client_id"),
    PrimaryKeyConstraint("origin", "client_id"),
    Index(None, "client_id"),
)

client_secrets = Table(  # two slots: two secrets live at once while one is being rotated (R3)
    "client_secrets",
    metadata,
    text_column("client_id"),
    number_column("slot"),
    text_column("kind"),  # sealed | sha256 | argon2
    Column("secret", LargeBinary, nullable=False),
    time_column("created_at"),
    time_column("expires_at"),
    PrimaryKeyConstraint("client_id", "slot"),
)

grants = Table(  # one sign-in to one client, with its code and the number of its newest refresh token (R3)
    "grants",
    metadata,
    text_column("grant_id", primary_key=True),
    text_column("client_id"),
    text_column("user_id"),
    number_column("rev"),  # the account's epoch when the grant was created; a grant with an older one is invalid
    text_column("session_id"),
    document_column("scopes"),
    text_column("redirect_uri"),
    Column("nonce", Text),
    text_column("code_challenge"),
    document_column("wanted_claims"),
    text_column("auth"),
    text_column("second_factor", server_default=text("''")),
    time_column("auth_time"),
    text_column("acr", server_default=text("''")),
    Column("code", LargeBinary, unique=True),  # digest
    time_column("code_ends_at"),
    time_column("code_taken_at"),
    number_column("code_failures"),
    number_column("generation"),
    time_column("refreshed_at"),
    text_column("refresh_kid", server_default=text("''")),
    text_column("attempt", server_default=text("''")),
    time_column("created_at"),
    time_column("ends_at"),
    time_column("revoked_at"),
    time_column("used_at", server_default=text("0")),  # when one of its tokens was last exchanged; see oauth/model.py
    Index(None, "user_id", "client_id"),
    Index(None, "session_id"),
    Index(None, "client_id"),
    # Indexes for the sweep.
    Index(None, "ends_at"),
    Index(
        "ix_grants_revoked",
        "revoked_at",
        postgresql_where=text("revoked_at > 0"),
        sqlite_where=text("revoked_at > 0"),
    ),
    postgresql_with=UPDATED_IN_PLACE,
)

consents = Table(
    "consents",
    metadata,
    text_column("user_id"),
    text_column("client_id"),
    document_column("scopes"),
    time_column("given_at"),
    time_column("ends_at", server_default=text("0")),  # 0: it has no end
    PrimaryKeyConstraint("user_id", "client_id"),
    Index(None, "client_id"),
)

device_requests = Table(  # RFC 8628
    "device_requests",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),
    text_column("user_code", unique=True),
    text_column("client_id"),
    document_column("scopes"),
    text_column("address"),
    text_column("state"),
    text_column("grant_id"),
    number_column("interval"),
    time_column("polled_at"),
    time_column("created_at"),
    time_column("ends_at"),
    Index(None, "ends_at"),
    postgresql_with=UPDATED_IN_PLACE,
)

pushed_requests = Table(  # RFC 9126
    "pushed_requests",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),
    text_column("client_id"),
    text_column("source"),
    text_column("request"),
    number_column("epoch"),  # the installation's when it was stored; with another one it ended
    time_column("created_at"),
    time_column("ends_at"),
    Index(None, "client_id", "source"),
    Index(None, "ends_at"),
)

logout_calls = Table(  # back-channel logout calls to clients
    "logout_calls",
    metadata,
    text_column("call_id", primary_key=True),
    text_column("client_id"),
    text_column("uri"),
    text_column("user_id"),
    text_column("session_id"),
    time_column("created_at"),
    number_column("tries"),
    time_column("next_try_at"),
    text_column("trouble"),
    Index(None, "next_try_at"),
)
