"""The schema, once, for both databases.

Times are Unix seconds as integers; 0 stands for "no end" and "never", as on the wire. Everything
that must be unique, single use or limited is a constraint here, never a count in the code.
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)

from gatehouse.storage.statements import Bytewise, Document

NAMING: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)

# A row number the database gives out; SQLite does so for INTEGER PRIMARY KEY only.
Position: Final = BigInteger().with_variant(Integer, "sqlite")


def _text(name: str, **options: Any) -> Column[str]:  # noqa: ANN401
    return Column(name, Text, nullable=False, **options)


def _time(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False)


def _document(name: str) -> Column[object]:
    return Column(name, Document, nullable=False)


# -- the installation itself --------------------------------------------------------------------------

installation = Table(  # facts about this installation: base_url, master_key_check, setup_closed, epoch, timeline
    "installation",
    metadata,
    _text("name", primary_key=True),
    _text("value"),
)

once = Table(  # single-use things, under the digest of their secret
    "once",
    metadata,
    _text("kind"),
    Column("digest", LargeBinary, nullable=False),
    _text("subject"),
    _document("details"),
    _time("created_at"),
    _time("expires_at"),
    _time("taken_at"),
    PrimaryKeyConstraint("kind", "digest"),
    Index(None, "kind", "subject"),
    Index(None, "expires_at"),
)

attempts = Table(  # failed guesses, exact and surviving restarts (checklist LG-06, LG-13; defaults S-15)
    "attempts",
    metadata,
    _text("subject", primary_key=True),  # a digest of who is counted
    _number("failures"),
    _time("first_at"),
    _time("blocked_until"),
    Index(None, "blocked_until"),
)

# -- audit --------------------------------------------------------------------------------------------

RARE: Final = "event NOT IN ('game.confirmed', 'grant.made', 'login.done', 'session.ended', 'session.opened')"
BY_OTHERS: Final = "actor <> subject"

audit_events = Table(
    "audit_events",
    metadata,
    _text("record_id", primary_key=True),
    _time("at"),
    _text("event"),
    _text("actor"),
    _text("subject"),
    _text("request_id"),
    _document("details"),
    Column("personal", Document),  # erasable; the commitment stays
    Column("salt", LargeBinary),
    Column("commitment", LargeBinary, nullable=False),
    Column("mac", LargeBinary, nullable=False),
    Column("place", BigInteger, unique=True),  # its number in the chain, once sealed
    Index(None, "subject", "at"),
    Index(None, "at"),
    # What happens all day (sign-ins, people about themselves) stays out of these two: it is found by the others.
    Index("ix_audit_events_rare", "event", "at", postgresql_where=text(RARE), sqlite_where=text(RARE)),
    Index("ix_audit_events_by_others", "actor", "at", postgresql_where=text(BY_OTHERS), sqlite_where=text(BY_OTHERS)),
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
    _time("at"),
    Column("link", LargeBinary, nullable=False),
    _text("kid"),
    Column("signature", LargeBinary, nullable=False),
)

audit_refusals = Table(  # capped: the oldest go first
    "audit_refusals",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    _text("record_id", unique=True),
    _time("at"),
    _text("event"),
    _text("reason"),
    _text("subject"),
    _text("request_id"),
    _document("details"),
    _document("personal"),
    Index(None, "subject"),
    sqlite_autoincrement=True,
)

tallies = Table(  # how often people came in, by the hour
    "tallies",
    metadata,
    _time("hour"),
    _text("what"),
    _number("times"),
    PrimaryKeyConstraint("hour", "what"),
)

# -- keys ---------------------------------------------------------------------------------------------

signing_keys = Table(
    "signing_keys",
    metadata,
    _text("kid", primary_key=True),
    _text("purpose"),
    _text("alg"),
    Column("public", LargeBinary, nullable=False),
    Column("sealed_private", LargeBinary, nullable=False),
    _time("created_at"),
    _time("signs_from"),
    _time("signs_until"),
    _time("verifies_until"),
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

# -- people -------------------------------------------------------------------------------------------

user_ids = Table("user_ids", metadata, _text("user_id", primary_key=True))  # every id ever given: never reused (R1)

users = Table(
    "users",
    metadata,
    _text("user_id", primary_key=True),
    _text("kind"),  # person | service
    Column("login", Text),  # as its owner writes it
    Column("login_key", Text, unique=True),  # the one spelling it is compared by
    _text("nick"),
    Column("password_hash", Text),
    _text("lang"),
    _text("country"),
    _text("level"),
    _time("reg_time"),
    _flag("email_verified"),
    _flag("phone_verified"),
    _flag("email_code"),  # a code by e-mail is one of the account's second factors
    _flag("blocked"),
    _number("rev"),  # revocation epoch: tokens with an older one are refused (R2)
    _document("meta"),
    _number("version"),
    # What the console's list of people walks along, and the few that it singles out.
    Index("ix_users_reg_time", "reg_time", "user_id"),
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
# By how they begin: the console's search among a hundred thousand.
Index("ix_users_login_begins", Bytewise(users.c.login_key))
Index("ix_users_nick_begins", Bytewise(func.lower(users.c.nick)))
Index("ix_users_id_begins", Bytewise(users.c.user_id))

user_tags = Table(
    "user_tags",
    metadata,
    _text("user_id"),
    _text("tag"),
    PrimaryKeyConstraint("user_id", "tag"),
    Index(None, "tag", "user_id"),
)

user_purchases = Table(
    "user_purchases",
    metadata,
    _text("user_id"),
    _text("purchase"),
    PrimaryKeyConstraint("user_id", "purchase"),
    Index(None, "purchase"),
)

totp_factors = Table(
    "totp_factors",
    metadata,
    _text("user_id", primary_key=True),
    Column("sealed_secret", LargeBinary, nullable=False),
    _time("confirmed_at"),
    _number("last_step"),
)

passkeys = Table(
    "passkeys",
    metadata,
    Column("credential_id", LargeBinary, primary_key=True, nullable=False),
    _text("user_id"),
    Column("public_key", LargeBinary, nullable=False),
    _number("sign_count"),
    _text("name"),
    _document("transports"),
    _time("created_at"),
    _time("used_at"),
    Index(None, "user_id"),
)

recovery_codes = Table(
    "recovery_codes",
    metadata,
    _text("user_id"),
    Column("digest", LargeBinary, nullable=False),
    _time("used_at"),
    PrimaryKeyConstraint("user_id", "digest"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),  # of the cookie's secret
    _text("session_id", unique=True),  # what lists show and ends are asked for by
    _text("user_id"),
    _number("rev"),  # the account's when it began: an older one is no session any more
    _text("auth"),
    _text("strength"),  # full, or limited after a short-lived token (R1)
    _time("created_at"),
    _time("proved_at"),  # when the person last showed a password or factor
    _time("seen_at"),
    _time("idle_ends_at"),
    _time("ends_at"),
    _text("address"),
    _text("agent"),
    Index(None, "user_id"),
    Index(None, "ends_at"),
)

login_tokens = Table(  # the opaque `token` of login data (R1)
    "login_tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),
    _text("user_id"),
    _number("rev"),
    _number("application_id"),
    _time("ends_at"),
    Index(None, "ends_at"),
)

interactions = Table(  # a person's way through one sign-in
    "interactions",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),
    _text("kind"),
    _text("step"),
    _document("ask"),  # what it is for, as its kind wrote it
    Column("user_id", Text),
    _text("auth"),  # what was proved so far
    _number("failures"),
    _time("created_at"),
    _time("ends_at"),
    _number("version"),
    Index(None, "ends_at"),
)

# -- mail ---------------------------------------------------------------------------------------------

outbox = Table(
    "outbox",
    metadata,
    _text("mail_id", primary_key=True),
    Column("sealed", LargeBinary, nullable=False),  # address, subject and text: they carry links that open doors
    _text("user_id"),  # the account it was written for; "" for none
    _text("template"),
    _time("created_at"),
    _number("tries"),
    _time("next_try_at"),
    _text("trouble"),  # what the last try ended with
    Index(None, "next_try_at"),
)

# -- OAuth clients ------------------------------------------------------------------------------------

clients = Table(
    "clients",
    metadata,
    _text("client_id", primary_key=True),
    Column("application_id", BigInteger),
    _text("name"),
    _text("profile"),
    _document("redirect_hosts"),
    _document("redirect_uris"),
    _document("post_logout_uris"),
    _document("scopes"),
    _document("origins"),
    _text("backchannel_logout_uri"),
    _document("jwks"),
    _document("claims"),
    _document("token_settings"),
    _flag("device_grant"),
    _flag("explain_errors"),
    _flag("first_party"),
    _flag("may_exchange"),
    _flag("require_pkce"),
    _flag("public"),
    _flag("removed"),
    _time("created_at"),
    _number("version"),
)

client_secrets = Table(  # two slots: two secrets live at once while one is being rotated (R3)
    "client_secrets",
    metadata,
    _text("client_id"),
    _number("slot"),
    _text("kind"),  # sealed | sha256 | argon2
    Column("secret", LargeBinary, nullable=False),
    _time("created_at"),
    _time("expires_at"),
    PrimaryKeyConstraint("client_id", "slot"),
)

grants = Table(  # one sign-in to one client, with its code and the number of its newest refresh token (R3)
    "grants",
    metadata,
    _text("grant_id", primary_key=True),
    _text("client_id"),
    _text("user_id"),
    _number("rev"),  # the account's when the grant was made: an older one is no grant any more
    _text("session_id"),
    _document("scopes"),
    _text("redirect_uri"),
    Column("nonce", Text),
    _text("code_challenge"),
    _document("wanted_claims"),
    _text("auth"),
    _time("auth_time"),
    Column("code", LargeBinary, unique=True),  # digest
    _time("code_ends_at"),
    _time("code_taken_at"),
    _number("code_failures"),
    _number("generation"),
    _time("refreshed_at"),
    _time("created_at"),
    _time("ends_at"),
    _time("revoked_at"),
    Index(None, "user_id", "client_id"),
    Index(None, "session_id"),
    Index(None, "client_id"),
    Index(None, "ends_at"),
)

consents = Table(
    "consents",
    metadata,
    _text("user_id"),
    _text("client_id"),
    _document("scopes"),
    _time("given_at"),
    PrimaryKeyConstraint("user_id", "client_id"),
    Index(None, "client_id"),
)

device_requests = Table(  # RFC 8628
    "device_requests",
    metadata,
    Column("digest", LargeBinary, primary_key=True, nullable=False),
    _text("user_code", unique=True),
    _text("client_id"),
    _document("scopes"),
    _text("address"),
    _text("state"),
    _text("grant_id"),
    _number("interval"),
    _time("polled_at"),
    _time("created_at"),
    _time("ends_at"),
    Index(None, "ends_at"),
)

game_sessions = Table(  # interface §2.2
    "game_sessions",
    metadata,
    _text("gsid", primary_key=True),
    Column("location", LargeBinary, nullable=False),
    _text("address"),
    _flag("address_proven"),
    _text("public_key"),
    _text("code"),
    _flag("code_shown"),
    _text("distr"),
    _number("app_id"),
    _number("gapp_id"),
    Column("options", LargeBinary, nullable=False),
    _text("state"),
    _text("failure"),
    _text("closed"),
    _text("user_id"),
    _number("rev"),
    _text("auth"),
    _number("polls"),
    _text("holder"),
    _number("cancels"),
    _time("created_at"),
    _time("ends_at"),
    _time("polled_at"),
    _time("last_seen"),
    _time("opened_at"),
    _time("signing_in_at"),
    _time("confirmed_at"),
    _time("delivered_at"),
    _time("closed_at"),
    Index(None, "ends_at"),
)

game_watchers = Table(  # nodes at which the owner of a game session has a socket open
    "game_watchers",
    metadata,
    _text("gsid"),
    _text("node"),
    _time("seen_at"),
    PrimaryKeyConstraint("gsid", "node"),
    Index(None, "seen_at"),
)

logout_calls = Table(  # clients to be told that someone signed out
    "logout_calls",
    metadata,
    _text("call_id", primary_key=True),
    _text("client_id"),
    _text("uri"),
    _text("user_id"),
    _text("session_id"),
    _time("created_at"),
    _number("tries"),
    _time("next_try_at"),
    _text("trouble"),
    Index(None, "next_try_at"),
)

# -- permissions --------------------------------------------------------------------------------------

permission_clock = Table(  # one row: grows with every change of a project or group, so that caches can tell (R5)
    "permission_clock",
    metadata,
    Column("only", Integer, primary_key=True, autoincrement=False),
    _number("structure"),
)

application_ids = Table(  # every id ever given: never reused (R5)
    "application_ids",
    metadata,
    Column("application_id", BigInteger, primary_key=True, autoincrement=False),
)

applications = Table(
    "applications",
    metadata,
    Column("application_id", BigInteger, primary_key=True, autoincrement=False),
    _text("name"),
    _text("description"),
    Column("project_id", Text),
    _flag("removed"),
    _document("settings"),
    _document("service_meta"),  # without private_key
    Column("sealed_private_key", LargeBinary),  # service_meta.private_key: written, never answered
    _time("created_at"),
    _number("version"),
    # Names are unique in a project (interface §4.6); a removed application gives its name free.
    Index(
        "uq_applications_name_in_project",
        "project_id",
        "name",
        unique=True,
        postgresql_where=text("NOT removed"),
        sqlite_where=text("NOT removed"),
    ),
)

projects = Table(
    "projects",
    metadata,
    _text("project_id", primary_key=True),
    _text("title"),
    _text("title_key", unique=True),  # the id its title would give: no two projects look alike (checklist PR-04)
    _text("description"),
    _document("tags"),
    _document("allowed_domains"),
    _document("allow"),
    _document("disallow"),
    _flag("removed"),
    _text("author"),
    Column("application_id", BigInteger),
    _time("created_at"),
    _number("version"),
    Index(None, "author"),
)

project_names = Table(  # ids and aliases, of removed projects too: one name, one project (R5)
    "project_names",
    metadata,
    _text("name", primary_key=True),
    _text("project_id"),
    _number("position"),  # 0 is the id itself; aliases are numbered in their order
    Index(None, "project_id"),
)

project_services = Table(  # roles of a connected application, given to or taken from a group (R5)
    "project_services",
    metadata,
    _text("project_id"),
    Column("application_id", BigInteger, nullable=False),
    _number("position"),
    _text("group_id"),  # "" in the one row of an application that is connected and grants nothing
    _document("roles"),
    _text("action"),
    PrimaryKeyConstraint("project_id", "application_id", "position"),
    Index(None, "application_id"),
)

groups = Table(
    "groups",
    metadata,
    _text("group_id", primary_key=True),
    _text("project_id"),
    _text("title"),
    _text("title_key"),
    _text("description"),
    _document("tags"),
    _document("conditions"),
    _time("created_at"),
    _number("version"),
    UniqueConstraint("project_id", "title_key"),
)

group_members = Table(  # those listed by id; others belong by condition
    "group_members",
    metadata,
    _text("group_id"),
    _text("user_id"),
    _number("position"),
    PrimaryKeyConstraint("group_id", "user_id"),
    Index(None, "user_id"),
)

access_keys = Table(
    "access_keys",
    metadata,
    _text("key_id", primary_key=True),
    Column("application_id", BigInteger, nullable=False),
    _number("slot"),  # two slots: the limit is a constraint (interface §8)
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("sealed", LargeBinary, nullable=False),
    _text("comment"),
    _time("created_at"),
    _time("modified_at"),
    _time("last_used"),
    UniqueConstraint("application_id", "slot"),
)

application_keys = Table(  # public keys applications sign their own service JWTs with
    "application_keys",
    metadata,
    _text("kid", primary_key=True),
    Column("application_id", BigInteger, nullable=False),
    _text("source"),  # service_meta | custom
    _text("pem"),
    _time("created_at"),
    Index(None, "application_id"),
)

service_tokens = Table(  # static service JWTs
    "service_tokens",
    metadata,
    _text("jti", primary_key=True),
    Column("application_id", BigInteger, nullable=False),
    _text("comment"),
    _time("created_at"),
    _time("ends_at"),
    _flag("revoked"),
    Index(None, "application_id"),
    Index(None, "ends_at"),
)

service_accounts = Table(
    "service_accounts",
    metadata,
    _text("user_id", primary_key=True),
    _text("project_id"),
    _text("name"),
    _text("comment"),
    _document("ip_ranges"),
    _text("public_key"),
    _text("created_by"),
    _time("created_at"),
    _text("jti"),
    _flag("revoked"),
    _number("version"),
    UniqueConstraint("project_id", "name"),
)

gdpr_requests = Table(  # someone's data is asked for, or to be removed, in applications (R6)
    "gdpr_requests",
    metadata,
    _text("request_id", primary_key=True),
    _text("kind"),
    _text("user_id"),
    _time("created_at"),
    _time("ends_at"),  # neither tried nor kept any longer
    Index(None, "user_id"),
    Index(None, "ends_at"),
)

gdpr_calls = Table(  # one address of one application to be called for such a request
    "gdpr_calls",
    metadata,
    _text("request_id"),
    _number("position"),
    Column("application_id", BigInteger, nullable=False),
    _text("url"),
    _text("state"),
    _number("tries"),  # grows with every taking: who comes with an older count has lost it to somebody else
    _time("next_try_at"),
    _text("trouble"),
    _time("done_at"),
    Column("sealed", LargeBinary),  # the answer, until it is collected
    PrimaryKeyConstraint("request_id", "position"),
    Index(None, "state", "next_try_at"),
)

gdpr_leases = Table(  # calls under way: one for an address, whoever makes it
    "gdpr_leases",
    metadata,
    _text("url", primary_key=True),
    _text("request_id"),
    _number("position"),
    _number("tries"),
    _time("ends_at"),
)

webhooks = Table(  # addresses that are told what happened
    "webhooks",
    metadata,
    _text("webhook_id", primary_key=True),
    Column("slot", Integer, nullable=False, unique=True),  # below WEBHOOKS_MOST: there are no more than that
    _text("url"),
    _text("description"),
    _document("topics"),
    _flag("enabled"),
    _number("place"),  # of the last sealed audit record that was read for it
    _number("given_up"),  # deliveries, one after the other
    _time("stopped_at"),  # when the service disabled it
    Column("sealed_secret", LargeBinary, nullable=False),
    Column("sealed_old_secret", LargeBinary),
    _time("old_secret_ends_at"),
    _text("created_by"),
    _time("created_at"),
    _number("version"),
)

webhook_deliveries = Table(  # the events on their way to webhooks, and the log of those that are over
    "webhook_deliveries",
    metadata,
    _text("delivery_id", primary_key=True),
    _text("webhook_id"),
    _text("event_id"),
    _text("event"),
    _number("place"),
    _text("body"),
    _text("state"),
    _number("tries"),  # grows with every taking, as that of gdpr_calls
    _time("next_try_at"),
    _time("held_until"),
    _time("ends_at"),
    _number("status"),
    _number("duration_ms"),
    _text("trouble"),
    _time("created_at"),
    _time("done_at"),
    Index(None, "webhook_id", "state", "next_try_at"),
    Index(None, "webhook_id", "created_at"),
    Index(None, "created_at"),
)

email_secrets = Table(  # who knows one may see login e-mails of his application's users (`with_email`, R1)
    "email_secrets",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    _time("created_at"),
    PrimaryKeyConstraint("application_id", "digest"),
)

application_schemas = Table(
    "application_schemas",
    metadata,
    Column("application_id", BigInteger, primary_key=True, autoincrement=False),
    _document("login"),
    _document("private_data"),
    _document("public_data"),
    _document("secret_data"),
    _number("version"),
    _time("updated_at"),
)

schema_versions = Table(  # schema and roles as every save left them, the newest hundred of each application
    "schema_versions",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    _number("version"),
    _time("saved_at"),
    _text("actor"),  # as the audit log names him; "" for what was there before any save
    _document("changes"),  # since the version before, counted
    _document("login"),
    _document("private_data"),
    _document("public_data"),
    _document("secret_data"),
    _document("roles"),
    PrimaryKeyConstraint("application_id", "version"),
)

roles = Table(
    "roles",
    metadata,
    Column("application_id", BigInteger, ForeignKey("applications.application_id"), nullable=False),
    _text("role_key"),  # lower case: names are unique ignoring case (R5)
    _text("name"),
    _text("description"),
    _flag("protected"),
    _flag("is_default"),
    Column("condition", Document),
    _text("condition_mode"),
    _number("user_limit"),
    _text("params"),
    _document("meta"),
    _number("version"),
    PrimaryKeyConstraint("application_id", "role_key"),
)

user_records = Table(  # what is written directly into one user's schema of one application
    "user_records",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    _text("user_id"),
    _document("login"),
    _document("private_data"),
    _document("public_data"),
    _document("secret_data"),
    _number("version"),
    PrimaryKeyConstraint("application_id", "user_id"),
    Index(None, "user_id"),
)

scope_records = Table(  # direct entries of one user in one project or on one of its resources
    "scope_records",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    _text("user_id"),
    _text("project_id"),
    _text("resource_kind"),  # "", applications, services, groups
    _text("resource_id"),
    _document("private_data"),
    _document("public_data"),
    PrimaryKeyConstraint("application_id", "user_id", "project_id", "resource_kind", "resource_id"),
    Index(None, "project_id"),
    Index(None, "user_id"),
)

role_assignments = Table(
    "role_assignments",
    metadata,
    Column("application_id", BigInteger, nullable=False),
    _text("user_id"),
    _text("project_id"),  # "" at the root
    _text("resource_kind"),  # "", applications, services, groups
    _text("resource_id"),
    _text("role_key"),
    _number("position"),  # as stored: parameters merge in this order (R5)
    _time("expired"),
    _number("ttl"),
    PrimaryKeyConstraint("application_id", "user_id", "project_id", "resource_kind", "resource_id", "role_key"),
    UniqueConstraint("application_id", "user_id", "project_id", "resource_kind", "resource_id", "position"),
    Index(None, "application_id", "role_key", "user_id"),
    Index(None, "user_id"),
    Index(None, "project_id", "application_id"),  # What ends soon: few of many assignments ever do.
    Index(
        "ix_role_assignments_ending",
        "expired",
        postgresql_where=text("expired > 0"),
        sqlite_where=text("expired > 0"),
    ),
)
