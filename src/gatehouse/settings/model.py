"""Every setting: its type, default, bounds and description, defined once.

The reference page, `config show` and the parser are generated from these classes. An empty text, list or secret
means "none".
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Struct, field

from gatehouse.accounts.phones.message_call import check_call_body, check_call_headers, check_call_url
from gatehouse.kernel.addresses import Network
from gatehouse.settings import grammar
from gatehouse.settings.appearance import BrandingSettings, LanguageSettings
from gatehouse.settings.guests import GuestSettings
from gatehouse.settings.info import SettingField, days, long_secret, number, per_minute, seconds, text
from gatehouse.settings.providers import ProviderSettings
from gatehouse.settings.secret import DatabaseUrl, Secret
from gatehouse.settings.terms import TermsSettings

Networks = tuple[Network, ...]
NO_SECRET: Final = Secret()
NO_DATABASE_URL: Final = DatabaseUrl()


class ServerSettings(Struct, frozen=True, kw_only=True):
    """Public address and listener."""

    base_url: Annotated[
        str,
        text(
            "Public address of the service and issuer of every token, byte for byte.",
            grammar.base_url,
            without="none: `serve` refuses to start, other commands use the address stored in the database",
            dev="`http://localhost:<port>`",
        ),
    ] = ""
    ws_url: Annotated[
        str,
        text("WebSocket address.", grammar.ws_url, without="`server.base_url` with ws or wss"),
    ] = ""
    host: Annotated[str, text("Address or host name to listen on.", grammar.listen_host)] = "127.0.0.1"
    port: Annotated[int, number("Port to listen on.", 1, 65_535)] = 8080
    workers: Annotated[int, number("Number of server processes; more than one needs PostgreSQL.", 1, 64)] = 1
    leave_seconds: Annotated[
        int,
        seconds(
            "How long a stopping node keeps serving while `/readyz` reports not ready, until its proxy notices.",
            0,
            60,
        ),
    ] = 0
    trusted_proxies: Annotated[
        Networks, SettingField("Networks of proxies whose forwarding headers are trusted.")
    ] = ()


class DatabaseSettings(Struct, frozen=True, kw_only=True):
    """Database connection."""

    url: Annotated[
        DatabaseUrl,
        text(
            "Database URL: `sqlite:///PATH` or `postgresql://USER@HOST/DATABASE`.",
            grammar.database_url,
            without="`gatehouse.db` in the data directory",
        ),
    ] = NO_DATABASE_URL
    listen_url: Annotated[
        DatabaseUrl,
        text(
            "Direct PostgreSQL URL for LISTEN if `database.url` points to PgBouncer.",
            grammar.postgresql_url,
            without="`database.url`",
        ),
    ] = NO_DATABASE_URL
    pool_min: Annotated[int, number("PostgreSQL connections each process keeps open.", 0, 500)] = 2
    pool_max: Annotated[int, number("Maximum PostgreSQL connections per process.", 1, 500)] = 10
    acquire_seconds: Annotated[int, seconds("How long a request waits for a connection.", 1, 60)] = 5
    statement_cache: Annotated[
        bool, SettingField("Use prepared statements; turn off behind PgBouncer in transaction mode.")
    ] = True
    idle_transaction_seconds: Annotated[
        int, seconds("How long a write of a frozen node can block other nodes on PostgreSQL.", 1, 60)
    ] = 3
    lock_seconds: Annotated[int, seconds("Lock timeout for writes in PostgreSQL.", 1, 60)] = 4
    statement_seconds: Annotated[int, seconds("Statement timeout in PostgreSQL.", 1, 600)] = 10
    standby_synchronous: Annotated[
        bool, SettingField("The standby is synchronous: a promotion loses no data and does not end all tokens.")
    ] = False


class SecuritySettings(Struct, frozen=True, kw_only=True):
    """Secrets that protect all other secrets."""

    master_key: Annotated[
        Secret,
        text(
            "Key of 32 bytes that encrypts signing keys and other secrets; create one with `gatehouse key init`.",
            grammar.master_key,
            without="none: the service does not start",
            dev="`dev.key` in the data directory, created if missing",
        ),
    ] = NO_SECRET
    previous_master_keys: Annotated[
        tuple[Secret, ...],
        text(
            "Earlier master keys, for secrets not yet re-encrypted by `gatehouse key rewrap`.",
            grammar.master_key,
        ),
    ] = ()
    password_pepper: Annotated[
        Secret, long_secret("Pepper for password hashes; if it is lost or changed, no password works.")
    ] = NO_SECRET


class PasswordSettings(Struct, frozen=True, kw_only=True):
    """Cost of password hashing (Argon2id)."""

    # The lower bounds are the minimum for secure hashes (S-02).
    memory_kib: Annotated[int, number("Argon2 memory per hash.", 19_456, 4_194_304, "KiB")] = 65_536
    time_cost: Annotated[int, number("Argon2 iterations.", 2, 20)] = 3
    parallelism: Annotated[int, number("Argon2 parallelism.", 1, 16)] = 1
    workers: Annotated[int, number("Maximum concurrent password hashes per process.", 1, 64)] = 2


class KeySettings(Struct, frozen=True, kw_only=True):
    """Keys that sign tokens."""

    rsa_bits: Annotated[Literal[2048, 3072], SettingField("Size of new RSA keys.", unit="bits")] = 2048
    rotate_days: Annotated[int, days("How long a key signs before it is rotated.", high=730)] = 90
    publish_lead_seconds: Annotated[int, seconds("How long a new key is published before it signs.", 60, 43_200)] = (
        3600
    )


class JwtSettings(Struct, frozen=True, kw_only=True):
    """Issued JWTs and their lifetimes."""

    jwt_without_factor: Annotated[
        bool, SettingField("Issue user JWTs to game clients that send no factor; such JWTs fail every factor check.")
    ] = False
    user_jwt_days: Annotated[int, days("Lifetime of a user JWT.", stored=True)] = 90
    expired_grace_days: Annotated[
        int, days("How long a service can still identify the user of an expired JWT.", low=0)
    ] = 30
    service_jwt_days: Annotated[int, days("Lifetime of a static service JWT.", stored=True)] = 90


class AccountSettings(Struct, frozen=True, kw_only=True):
    """Accounts and registration."""

    registration: Annotated[
        bool, SettingField("Allow self-registration (otherwise invitation only).", dev="`true`", stored=True)
    ] = False
    allowed_domains: Annotated[
        tuple[str, ...], text("Email domains allowed to register; empty allows all.", grammar.domain, stored=True)
    ] = ()
    email_sign_in: Annotated[
        bool, SettingField("Allow sign-in by a link or code sent by email, without a password.", stored=True)
    ] = False
    password_optional: Annotated[
        bool,
        SettingField("Allow self-registration without a password; needs `accounts.email_sign_in`.", stored=True),
    ] = False
    username_sign_in: Annotated[
        bool, SettingField("Let people choose a user name and sign in with it.", stored=True)
    ] = True
    breached_passwords: Annotated[
        str,
        text(
            "File of breached passwords that cannot be used, lines `SHA-1:COUNT` sorted by hash.",
            grammar.absolute_path,
        ),
    ] = ""
    geoip_file: Annotated[
        str,
        text("GeoIP database in MaxMind format (.mmdb) for approximate locations.", grammar.absolute_path),
    ] = ""
    vendor_nick_field: Annotated[
        str, text("Field name of the vendor nickname in login data.", grammar.login_data_field)
    ] = "ghnick"


class MailSettings(Struct, frozen=True, kw_only=True):
    """SMTP server."""

    host: Annotated[
        str,
        text(
            "Host name or address of the mail server.",
            grammar.listen_host,
            without="none: emails wait in the outbox",
            dev="none: emails are printed to the server log",
            stored=True,
        ),
    ] = ""
    port: Annotated[int, number("Port; usually 587 with `starttls` and 465 with `tls`.", 1, 65_535, stored=True)] = (
        587
    )
    security: Annotated[
        Literal["starttls", "tls", "none"],
        SettingField("Encryption of the connection; use `none` only for a mail server on this machine.", stored=True),
    ] = "starttls"
    username: Annotated[
        str, SettingField("User name for the mail server.", without="none: no authentication", stored=True)
    ] = ""
    password: Annotated[
        Secret,
        SettingField(
            "Password for `mail.username`; entered again when that or the server changes.",
            stored=True,
            sent_to=("host", "port", "security", "username"),
        ),
    ] = NO_SECRET
    from_address: Annotated[
        str, text("Sender address; required if a mail server is set.", grammar.mail_address, stored=True)
    ] = ""
    from_name: Annotated[
        str, SettingField("Sender name, also used for the service in emails.", without="`branding.name`", stored=True)
    ] = ""
    timeout_seconds: Annotated[int, seconds("Timeout of the mail server per email.", 1, 120, stored=True)] = 20


class PhoneSettings(Struct, frozen=True, kw_only=True):
    """Phone numbers, verified by a code in a text message."""

    countries: Annotated[
        tuple[str, ...],
        text(
            "Countries whose numbers get text messages, as two letters.",
            grammar.phone_country,
            without="none: phone numbers cannot be verified",
            stored=True,
        ),
    ] = ()
    sender: Annotated[
        Literal["none", "twilio", "vonage", "messagebird", "json", "custom"],
        SettingField(
            "Service that sends text messages: a ready-made call, `json` for a hook of your own, or `custom`.",
            dev="text messages are printed to the server log while it is `none`",
            stored=True,
        ),
    ] = "none"
    account: Annotated[
        str, SettingField("Account at the sender: the Account SID at Twilio, the API key at Vonage.", stored=True)
    ] = ""
    secret: Annotated[
        Secret,
        SettingField(
            "Auth token, API secret or key of the sender; entered again when the sender or its address changes.",
            stored=True,
            sent_to=("sender", "account", "url", "method", "headers", "body"),
        ),
    ] = NO_SECRET
    sender_id: Annotated[
        str, SettingField("Number or name that messages come from, as the sender knows it.", stored=True)
    ] = ""
    url: Annotated[
        str,
        text(
            "URL of `json` or `custom`; placeholders only behind the question mark.",
            check_call_url,
            stored=True,
        ),
    ] = ""
    method: Annotated[Literal["POST", "PUT", "GET"], SettingField("Method of `custom`.", stored=True)] = "POST"
    headers: Annotated[
        str,
        text(
            "Headers of `custom`, a JSON object; `{secret}`, `{account}` and `{basic}` are filled in.",
            check_call_headers,
            stored=True,
        ),
    ] = ""
    body: Annotated[
        str,
        text(
            "Body of `custom`: JSON or form fields with `{to}` or `{digits}`, and `{text}`, which are encoded.",
            check_call_body,
            stored=True,
        ),
    ] = ""
    message_cents: Annotated[
        int,
        number("What one text message costs, by the price list of the sender.", 1, 1_000, "cents", stored=True),
    ] = 10
    cost_a_day: Annotated[
        int,
        number(
            "Maximum cost of text messages in 24 hours; then no code is sent until it is below again.",
            100,
            10_000_000,
            "cents",
            stored=True,
        ),
    ] = 2_000
    confirm_sign_in: Annotated[
        bool,
        SettingField(
            "Let people confirm sign-ins with a code in a text message, the weakest second factor.", stored=True
        ),
    ] = False


class SessionSettings(Struct, frozen=True, kw_only=True):
    """Browser sessions."""

    idle_hours: Annotated[int, number("Inactivity after which a session ends.", 1, 8_760, "hours", stored=True)] = 72
    absolute_days: Annotated[
        int, days("Time after which a session ends for people who choose to stay signed in.", stored=True)
    ] = 30
    unless_stay_hours: Annotated[
        int,
        number(
            "Time after which a session ends for people who do not stay signed in.", 1, 8_760, "hours", stored=True
        ),
    ] = 12
    fresh_minutes: Annotated[
        int,
        number(
            "Time after a sign-in in which people can change their sign-in methods.", 1, 120, "minutes", stored=True
        ),
    ] = 10
    new_device_email: Annotated[
        bool, SettingField("Email people about sign-ins from a browser that is new for their account.", stored=True)
    ] = True
    history_days: Annotated[
        int,
        days(
            "How long the sign-in history has IP addresses and devices; at most `audit.retention_days`.",
            high=3_650,
            stored=True,
        ),
    ] = 90


class GameSettings(Struct, frozen=True, kw_only=True):
    """Game session login."""

    session_info_allow: Annotated[
        Networks,
        SettingField("Networks allowed to call the game session info endpoint.", dev="`127.0.0.0/8`, `::1/128`"),
    ] = ()
    retry_delay: Annotated[int, seconds("How long a client must wait after RETRY before polling again.", 1, 60)] = 1
    code_match: Annotated[
        bool, SettingField("Require code confirmation for every game sign-in from another IP address.", stored=True)
    ] = False
    early_polls: Annotated[
        int, number("Number of early polls within a minute that block a game session.", 2, 100)
    ] = 5
    block_seconds: Annotated[int, seconds("Duration of the first block; doubles each time.", 10, 3_600)] = 60
    block_longest_seconds: Annotated[int, seconds("Maximum duration of a block.", 60, 86_400)] = 3_600
    blocked_most: Annotated[
        int, number("Number of blocked game sessions after which their IP address is blocked.", 2, 10_000)
    ] = 20
    pending_most: Annotated[
        int,
        number("Maximum pending game sessions; further registrations get a 503.", 100, 100_000_000),
    ] = 1_000_000
    sockets_per_session: Annotated[int, number("Maximum WebSockets per game session.", 1, 1_000)] = 8
    sockets_per_source: Annotated[int, number("Maximum WebSockets per source and process.", 1, 1_000_000)] = 2_000


class OAuthSettings(Struct, frozen=True, kw_only=True):
    """OAuth and OpenID Connect."""

    code_seconds: Annotated[int, seconds("Lifetime of an authorization code.", 10, 600, stored=True)] = 60
    refresh_grace_seconds: Annotated[
        int,
        seconds(
            "How long concurrent refreshes get the same new token; 10 suits browser applications.", 0, 60, stored=True
        ),
    ] = 0
    refresh_family_days: Annotated[int, days("Maximum time one sign-in can be refreshed.", stored=True)] = 90
    client_document_hosts: Annotated[
        tuple[str, ...],
        text(
            "Hosts whose client ID metadata documents are accepted: `client.example` or `*.client.example`.",
            grammar.document_host,
            without="none: a client_id that is a URL is refused",
            stored=True,
        ),
    ] = ()
    client_document_app_uris: Annotated[
        tuple[str, ...],
        text(
            "Private-use redirect URIs that a host's documents may name, like `client.example=app://callback`.",
            grammar.document_app_uri,
            without="none: only the origin of the document, and loopback",
            stored=True,
        ),
    ] = ()


class PasskeySettings(Struct, frozen=True, kw_only=True):
    """The host that passkeys belong to."""

    rp_id: Annotated[
        str,
        text(
            "Host that passkeys belong to; cannot change while there are passkeys.",
            grammar.passkey_host,
            without="the host of `server.base_url`",
        ),
    ] = ""
    related_origins: Annotated[
        tuple[str, ...],
        text(
            "Other origins, like `https://sso.studio.example`, that browsers let use the passkeys; at most 20.",
            grammar.https_origin,
            without="none",
            stored=True,
        ),
    ] = ()


class PermissionSettings(Struct, frozen=True, kw_only=True):
    """Permission endpoints."""

    always_200: Annotated[bool, SettingField("Return errors with HTTP 200 too, for old clients.")] = False
    max_age_seconds: Annotated[int, seconds("How long clients may cache a permission list.", 0, 300)] = 2
    cache_mb: Annotated[
        int,
        number("Memory for cached permission models and evaluations per process, in megabytes.", 16, 65_536),
    ] = 64
    streams_per_caller: Annotated[
        int, number("Change streams that one caller may have open at each process.", 1, 1_000)
    ] = 32
    streams_most: Annotated[int, number("Change streams open at each process, of all callers.", 1, 100_000)] = 1_000


class ApplicationSettings(Struct, frozen=True, kw_only=True):
    """Applications."""

    keys_dir: Annotated[
        str, text("Directory with public keys of applications, `<application id>/*.pem`.", grammar.absolute_path)
    ] = ""


class OutboundSettings(Struct, frozen=True, kw_only=True):
    """Outbound requests to URLs configured by others."""

    allow: Annotated[Networks, SettingField("Private networks that may be called, also by plain http.")] = ()
    ca_file: Annotated[
        str,
        text(
            "PEM file with certificate authorities that are trusted in addition to those of the system.",
            grammar.absolute_path,
        ),
    ] = ""


class OperationsSettings(Struct, frozen=True, kw_only=True):
    """Metrics and health check details."""

    bind: Annotated[str, text("Separate listener, like `127.0.0.1:9090`.", grammar.bind)] = ""
    token: Annotated[Secret, long_secret("Bearer token for metrics and health details on the main listener.")] = (
        NO_SECRET
    )
    security_txt: Annotated[
        str,
        text(
            "File with the security contact, served at `/.well-known/security.txt` (RFC 9116).",
            grammar.absolute_path,
        ),
    ] = ""


class TelemetrySettings(Struct, frozen=True, kw_only=True):
    """OpenTelemetry; needs the extra `gatehouse[telemetry]`."""

    endpoint: Annotated[
        str,
        text(
            "Address of a collector for OTLP over HTTP, like `http://127.0.0.1:4318`.",
            grammar.base_url,
            without="none: nothing is loaded or sent",
        ),
    ] = ""
    service_name: Annotated[str, text("Name of this service in traces.", grammar.brand_name)] = "gatehouse"
    sample_percent: Annotated[int, number("Requests that get a trace.", 0, 100, "percent")] = 10
    interval_seconds: Annotated[int, seconds("How often metrics are sent.", 5, 3_600)] = 60


class LogSettings(Struct, frozen=True, kw_only=True):
    """Logging."""

    level: Annotated[Literal["debug", "info", "warning", "error"], SettingField("Minimum log level.")] = "info"
    format: Annotated[
        Literal["json", "console"], SettingField("One JSON object per line, or human-readable text.", dev="`console`")
    ] = "json"


class AuditSettings(Struct, frozen=True, kw_only=True):
    """Audit log."""

    retention_days: Annotated[int, days("How long records are kept; 0 keeps them forever.", low=0, high=36_500)] = 365
    refusals_kept: Annotated[
        int, number("Maximum number of refused requests kept, newest first.", 1000, 100_000_000, "records")
    ] = 100_000
    head_minutes: Annotated[
        int, number("How often the head of the log is logged and sent to webhooks; 0 for never.", 0, 1_440, "minutes")
    ] = 60


class RateSettings(Struct, frozen=True, kw_only=True):
    """Rate limits per caller and endpoint class."""

    enabled: Annotated[bool, SettingField("Enforce rate limits, with Retry-After.")] = True
    public: Annotated[int, per_minute("Pages and everything not listed below.")] = 1200
    login: Annotated[int, per_minute("Endpoints that accept a password or one-time code.")] = 120
    token: Annotated[int, per_minute("OAuth token, userinfo, revocation and exchange.")] = 6000
    poll: Annotated[int, per_minute("Game sessions.")] = 6000
    admin: Annotated[int, per_minute("Permission endpoints and the console.")] = 6000
    keys: Annotated[int, per_minute("Public keys and discovery.")] = 6000
    site: Annotated[int, per_minute("Requests to protected sites (forward auth).")] = 12000


class ForwardAuthSettings(Struct, frozen=True, kw_only=True):
    """Sites behind a reverse proxy."""

    require_application: Annotated[
        bool,
        SettingField(
            "Refuse `/proxy/auth` without `application_id` once sites of two applications are registered.",
            stored=True,
        ),
    ] = True


class ProtectionSettings(Struct, frozen=True, kw_only=True):
    """Protection of registration, password reset and guest creation against automated use."""

    proof_of_work: Annotated[
        Literal["off", "on", "auto"],
        SettingField(
            "Clients must solve a puzzle: never, always, or after more requests than `protection.attack_rate`.",
            stored=True,
        ),
    ] = "off"
    difficulty: Annotated[
        int,
        number(
            "Average work for a puzzle: 2 to this power hashes.",
            8,
            26,
            "bits",
            stored=True,
        ),
    ] = 18
    attack_rate: Annotated[
        int,
        number(
            "Registrations, resets or new guests in ten minutes after which `auto` requires puzzles.",
            1,
            1_000_000,
            "requests",
            stored=True,
        ),
    ] = 300


class Settings(Struct, frozen=True, kw_only=True):
    """All settings. Only those with `stored` can change while the process runs (docs/decisions/0042)."""

    server: ServerSettings = field(default_factory=ServerSettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    security: SecuritySettings = field(default_factory=SecuritySettings)
    passwords: PasswordSettings = field(default_factory=PasswordSettings)
    keys: KeySettings = field(default_factory=KeySettings)
    tokens: JwtSettings = field(default_factory=JwtSettings)
    accounts: AccountSettings = field(default_factory=AccountSettings)
    guests: GuestSettings = field(default_factory=GuestSettings)
    sessions: SessionSettings = field(default_factory=SessionSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    phone: PhoneSettings = field(default_factory=PhoneSettings)
    branding: BrandingSettings = field(default_factory=BrandingSettings)
    languages: LanguageSettings = field(default_factory=LanguageSettings)
    game: GameSettings = field(default_factory=GameSettings)
    oauth: OAuthSettings = field(default_factory=OAuthSettings)
    passkeys: PasskeySettings = field(default_factory=PasskeySettings)
    permissions: PermissionSettings = field(default_factory=PermissionSettings)
    applications: ApplicationSettings = field(default_factory=ApplicationSettings)
    outbound: OutboundSettings = field(default_factory=OutboundSettings)
    operations: OperationsSettings = field(default_factory=OperationsSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    log: LogSettings = field(default_factory=LogSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    rates: RateSettings = field(default_factory=RateSettings)
    protection: ProtectionSettings = field(default_factory=ProtectionSettings)
    forward_auth: ForwardAuthSettings = field(default_factory=ForwardAuthSettings)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)  # by ID
    terms: Mapping[str, TermsSettings] = field(default_factory=dict)  # by ID of the document
