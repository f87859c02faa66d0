"""Accounts, second factors, sessions and sign-in flows."""

from sqlalchemy import Column, Index, LargeBinary, PrimaryKeyConstraint, Table, Text, false, func, text

from gatehouse.storage.statements import Bytewise, JsonDocument
from gatehouse.storage.tables.columns import (
    UPDATED_IN_PLACE,
    document_column,
    flag_column,
    metadata,
    number_column,
    text_column,
    time_column,
)

user_ids = Table(
    "user_ids", metadata, text_column("user_id", primary_key=True)
)  # every id ever used; never reused (R1)

# Every user name ever used, as a digest; never given to another account (R9). `user_id` is empty after erasure.
usernames = Table(
    "usernames",
    metadata,
    text_column("digest", primary_key=True),  # SHA-256, in hex
    text_column("user_id"),
    Index(None, "user_id"),
)

users = Table(
    "users",
    metadata,
    text_column("user_id", primary_key=True),
    text_column("kind"),  # person | service
    Column("login", Text),  # as its owner writes it
    Column("login_key", Text, unique=True),  # the canonical spelling, or the exact one if there is a shared_key
    Column("shared_key", Text),  # the canonical spelling, if another account had it first (docs/decisions/0065)
    text_column("nick"),
    Column("password_hash", Text),
    text_column("password_browser", server_default=text("''")),  # a digest; empty unless set at registration
    text_column("lang"),
    text_column("country"),
    text_column("level"),
    time_column("reg_time"),
    flag_column("email_verified"),
    flag_column("phone_verified"),
    flag_column("email_code"),  # a code by e-mail is one of the account's second factors
    flag_column("blocked"),
    number_column("rev"),  # revocation epoch: tokens with an older one are refused (R2)
    document_column("meta"),
    number_column("version"),
    text_column("name", server_default=text("''")),
    text_column("given_name", server_default=text("''")),
    text_column("family_name", server_default=text("''")),
    Column("username", Text),
    time_column("username_at", server_default=text("0")),  # last chosen by a person; 0 while it was only generated
    text_column("zoneinfo", server_default=text("''")),
    text_column("picture", server_default=text("''")),  # ID of the image, if there is one
    time_column("updated_at", server_default=text("0")),  # last change of the profile; 0 since registration
    text_column("nick_key", server_default=text("''")),  # this and the next: as a search compares them
    text_column("name_key", server_default=text("''")),
    text_column("phone", server_default=text("''")),  # in E.164
    flag_column("phone_code", server_default=false()),  # a code by text message is one of the second factors
    flag_column("phone_closed", server_default=false()),  # after too many wrong codes, until another factor opens it
    time_column("lost_at", server_default=text("0")),  # when its address went to its owner and it ended (R10)
    # Bans that were active when one was last saved or lifted: read with the account (docs/decisions/0044).
    Column("bans", JsonDocument, nullable=False, server_default=text("'[]'")),
    Index("uq_users_username", "username", unique=True),
    Index(
        "uq_users_phone",
        "phone",
        unique=True,
        postgresql_where=text("phone_verified IS true AND phone <> ''"),
        sqlite_where=text("phone_verified IS 1 AND phone <> ''"),
    ),
    Index(
        "ix_users_shared_key",
        "shared_key",
        postgresql_where=text("shared_key IS NOT NULL"),
        sqlite_where=text("shared_key IS NOT NULL"),
    ),
    # Everything that a search compares: it reads this index and not the table (docs/decisions/0037).
    Index("ix_users_search", "reg_time", "user_id", "nick_key", "name_key", "login_key", "blocked", "kind"),
    # Indexes of the console's list of people and of its filters.
    Index("ix_users_reg_time", "reg_time", "user_id"),
    # For the highest one (storage/epoch.py); most accounts have never ended everything.
    Index("ix_users_rev", "rev", postgresql_where=text("rev > 0"), sqlite_where=text("rev > 0")),
    Index(
        "ix_users_lost_at",
        "lost_at",
        "user_id",
        postgresql_where=text("lost_at > 0"),
        sqlite_where=text("lost_at > 0"),
    ),
    Index(
        "ix_users_blocked",
        "reg_time",
        "user_id",
        postgresql_where=text("blocked IS true"),
        sqlite_where=text("blocked IS 1"),
    ),
    Index(
        "ix_users_service",
        "reg_time",
        "user_id",
        postgresql_where=text("kind = 'service'"),
        sqlite_where=text("kind = 'service'"),
    ),
)

last_seen = (
    Table(  # one row for every account; apart from it, because it changes with most sign-ins (docs/decisions/0060)
        "last_seen",
        metadata,
        text_column("user_id", primary_key=True),
        time_column("seen_at"),  # to a minute; 0 for never
        Index("ix_last_seen_seen_at", "seen_at", "user_id"),
        postgresql_with=UPDATED_IN_PLACE,
    )
)

phone_events = Table(  # messages and wrong codes of the last day, to count them (R11)
    "phone_events",
    metadata,
    text_column("event_id", primary_key=True),
    text_column("kind"),  # message | wrong
    time_column("at"),
    text_column("user_id"),
    text_column("number_key"),  # HMAC of the number
    text_column("network"),  # empty where the limit of addresses does not count
    Index(None, "at"),
    Index(None, "number_key", "at"),
    Index(None, "user_id", "kind", "at"),
    Index(None, "network", "at"),
)

failed_sign_ins = Table(  # counted, not logged one by one (accounts/failed_sign_ins)
    "failed_sign_ins",
    metadata,
    text_column("user_id"),
    time_column("hour"),
    text_column("reason"),
    text_column("network"),
    number_column("times"),
    PrimaryKeyConstraint("user_id", "hour", "reason", "network"),
    Index(None, "hour"),
)

# Prefix indexes for the console's search among a hundred thousand people.
Index("ix_users_login_begins", Bytewise(users.c.login_key))
Index("ix_users_nick_begins", Bytewise(func.lower(users.c.nick)))
Index("ix_users_id_begins", Bytewise(users.c.user_id))

# One row for each source: an identity with the provider that spoke for it, or nothing of either for people and the
# service. What one source takes away, another may still give (docs/decisions/0043).
user_tags = Table(
    "user_tags",
    metadata,
    text_column("user_id"),
    text_column("tag"),
    text_column("issuer", server_default=text("''")),
    text_column("subject", server_default=text("''")),
    text_column("provider", server_default=text("''")),
    flag_column("kept", server_default=false()),  # stays without the identity, by the rule that set it
    PrimaryKeyConstraint("user_id", "tag", "issuer", "subject"),
    Index(None, "tag", "user_id"),
    Index(
        "ix_user_tags_provider",
        "provider",
        "tag",
        postgresql_where=text("provider <> ''"),
        sqlite_where=text("provider <> ''"),
    ),
    Index(
        "ix_user_tags_kept",
        "issuer",
        "subject",
        postgresql_where=text("kept IS true"),
        sqlite_where=text("kept IS 1"),
    ),
)

user_purchases = Table(
    "user_purchases",
    metadata,
    text_column("user_id"),
    text_column("purchase"),
    text_column("issuer", server_default=text("''")),
    text_column("subject", server_default=text("''")),
    text_column("provider", server_default=text("''")),
    PrimaryKeyConstraint("user_id", "purchase", "issuer", "subject"),
    Index(None, "purchase"),
    Index(
        "ix_user_purchases_provider",
        "provider",
        "purchase",
        postgresql_where=text("provider <> ''"),
        sqlite_where=text("provider <> ''"),
    ),
)

bans = Table(  # every ban, also ended and lifted ones; `users.bans` has the active ones
    "bans",
    metadata,
    text_column("ban_id", primary_key=True),  # in the order of time
    text_column("user_id"),
    number_column("application_id"),  # 0 for none
    text_column("project_id"),
    text_column("reason"),
    text_column("public_text"),
    time_column("until"),  # 0 for no end
    number_column("devices"),  # how many devices it counts for, with any account
    text_column("author"),
    time_column("created_at"),
    time_column("lifted_at"),  # 0 while it is not lifted
    text_column("lifted_by"),
    number_column("author_rank", server_default=text("0")),  # BanRank
    text_column("source", server_default=text("''")),  # ID of the ban that it copies
    time_column("erased_at", server_default=text("0")),  # 0 while its account exists
    Index(None, "user_id", "ban_id"),
    Index(None, "source"),
    Index(None, "application_id", "ban_id"),
    Index(None, "project_id", "ban_id"),
)

user_devices = Table(  # devices at sign-ins: an HMAC of the factor, deleted after 30 days (R10)
    "user_devices",
    metadata,
    text_column("user_id"),
    text_column("device"),
    time_column("seen_at"),
    PrimaryKeyConstraint("user_id", "device"),
    Index(None, "device"),
    Index(None, "seen_at"),
)

accepted_terms = Table(  # documents that people accepted, and as `age` the band of their age (R10)
    "accepted_terms",
    metadata,
    text_column("user_id"),
    text_column("document"),
    text_column("version"),
    time_column("accepted_at"),
    PrimaryKeyConstraint("user_id", "document", "version"),
)

ban_digests = Table(  # HMACs of devices, identities and addresses that a ban counts for with any account (R14)
    "ban_digests",
    metadata,
    text_column("ban_id"),
    text_column("kind"),
    text_column("digest"),
    time_column("ends_at"),  # 0 for the end of the ban
    PrimaryKeyConstraint("ban_id", "kind", "digest"),
    Index(None, "kind", "digest"),
)

identities = Table(  # at sign-in providers and game platforms (R10)
    "identities",
    metadata,
    text_column("issuer"),
    text_column("subject"),
    text_column("user_id"),
    text_column("provider"),
    text_column("label"),
    time_column("created_at"),
    time_column("used_at"),
    PrimaryKeyConstraint("issuer", "subject"),
    Index(None, "user_id"),
    Index(None, "provider", "used_at"),  # guests that are idle
)

retired_device_keys = Table(  # of guests who have an account now; they open nothing and make no new guest (R10)
    "retired_device_keys",
    metadata,
    text_column("subject", primary_key=True),  # of the former identity
    text_column("user_id"),
    time_column("retired_at"),
    Index(None, "user_id"),
)

user_aliases = Table(  # former IDs of accounts; services find an account by them for a while (R10)
    "user_aliases",
    metadata,
    text_column("alias", primary_key=True),
    text_column("user_id"),
    time_column("created_at"),
    time_column("ends_at"),
    Index(None, "user_id"),
    Index(None, "ends_at"),
)

totp_factors = Table(
    "totp_factors",
    metadata,
    text_column("user_id", primary_key=True),
    Column("sealed_secret", LargeBinary, nullable=False),
    time_column("confirmed_at"),
    number_column("last_step"),
)

passkeys = Table(
    "passkeys",
    metadata,
    Column("credential_id", LargeBinary, primary_key=True, nullable=False),
    text_column("user_id"),
    Column("public_key", LargeBinary, nullable=False),
    number_column("sign_count"),
    text_column("name"),
    document_column("transports"),
    time_column("created_at"),
    time_column("used_at"),
    Index(None, "user_id"),
)

recovery_codes = Table(
    "recovery_codes",
    metadata,
    text_column("user_id"),
    Column("digest", LargeBinary, nullable=False),
    time_column("used_at"),
    PrimaryKeyConstraint("user_id", "digest"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),  # of the cookie's secret
    text_column("session_id", unique=True),  # the id that lists show and that ends a session
    text_column("user_id"),
    number_column("rev"),  # the account's epoch when it began; a session with an older one is invalid
    text_column("auth"),
    text_column("second_factor", server_default=text("''")),
    text_column("strength"),  # full, or limited after a short-lived token (R1)
    time_column("created_at"),
    time_column("proved_at"),  # when the person last used a password or factor
    time_column("seen_at"),
    time_column("idle_ends_at"),
    time_column("ends_at"),
    text_column("address"),
    text_column("agent"),
    Column("proved", JsonDocument, nullable=False, server_default=text("'[]'")),  # what it was made with
    # When the sweep looks at it, which is never before it ends: `idle_ends_at` changes every minute, this once a day.
    time_column("sweep_at", server_default=text("0")),
    Index(None, "user_id"),
    Index(None, "sweep_at"),
    postgresql_with=UPDATED_IN_PLACE,
)

site_sessions = Table(  # on protected sites; valid only while the person's session is (R9)
    "site_sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),  # of the cookie's secret
    text_column("origin"),
    text_column("user_id"),
    number_column("rev"),
    text_column("session_id"),
    time_column("created_at"),
    time_column("ends_at"),
    Index(None, "user_id"),
    Index(None, "ends_at"),
)

login_tokens = Table(  # the opaque `token` of login data (R1)
    "login_tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),
    text_column("user_id"),
    number_column("rev"),
    number_column("application_id"),
    time_column("ends_at"),
    Index(None, "user_id"),  # to end all logins of a user
    Index(None, "ends_at"),
)

interactions = Table(  # a running sign-in flow of a person
    "interactions",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),
    text_column("kind"),
    text_column("step"),
    document_column("ask"),  # its purpose, as its kind wrote it
    Column("user_id", Text),
    text_column("auth"),  # the factors proved so far
    number_column("failures"),
    time_column("created_at"),
    time_column("ends_at"),
    number_column("version"),
    Index(None, "ends_at"),
    postgresql_with=UPDATED_IN_PLACE,
)
