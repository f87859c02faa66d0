"""Every setting there is: its type, default, bounds and meaning, once.

The reference page, `config show` and the parser are all made from these classes.
An empty text, list or secret means "none".
"""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from gatehouse.kernel.addresses import Network
from gatehouse.settings import grammar
from gatehouse.settings.about import SettingInfo, days, long_secret, number, per_minute, seconds, text
from gatehouse.settings.secret import DatabaseUrl, Secret

Networks = tuple[Network, ...]
NO_SECRET: Final = Secret()
NO_DATABASE_URL: Final = DatabaseUrl()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where the service is reached, and where it listens."""

    base_url: Annotated[
        str,
        text(
            "The address clients use and the issuer of every token, byte for byte.",
            grammar.base_url,
            without="none: `serve` refuses to start, other commands use what the database remembers",
            dev="`http://localhost:<port>`",
        ),
    ] = ""
    ws_url: Annotated[
        str,
        text("The address of the WebSockets.", grammar.ws_url, without="`server.base_url` with ws or wss"),
    ] = ""
    host: Annotated[str, text("The address or name to listen on.", grammar.listen_host)] = "127.0.0.1"
    port: Annotated[int, number("The port to listen on.", 1, 65_535)] = 8080
    workers: Annotated[int, number("Processes that serve; more than one needs PostgreSQL.", 1, 64)] = 1
    leave_seconds: Annotated[
        int,
        seconds("How long a node told to stop still serves while `/readyz` says no, until its proxy knows.", 0, 60),
    ] = 0
    trusted_proxies: Annotated[
        Networks, SettingInfo("Networks of the proxies whose forwarding headers are believed.")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """Where everything is kept."""

    url: Annotated[
        DatabaseUrl,
        text(
            "The database: `sqlite:///PATH` or `postgresql://USER@HOST/DATABASE`.",
            grammar.database_url,
            without="`gatehouse.db` in the data directory",
        ),
    ] = NO_DATABASE_URL
    listen_url: Annotated[
        DatabaseUrl,
        text(
            "A direct PostgreSQL address for LISTEN, when `database.url` leads through PgBouncer.",
            grammar.postgresql_url,
            without="`database.url`",
        ),
    ] = NO_DATABASE_URL
    pool_min: Annotated[int, number("PostgreSQL connections each process keeps open.", 0, 500)] = 2
    pool_max: Annotated[int, number("PostgreSQL connections each process may open.", 1, 500)] = 10
    acquire_seconds: Annotated[int, seconds("How long a request waits for a connection.", 1, 60)] = 5
    statement_cache: Annotated[
        bool, SettingInfo("Prepare each statement once; turn off behind PgBouncer in transaction mode.")
    ] = True
    idle_transaction_seconds: Annotated[
        int, seconds("How long a node that stops inside a write on PostgreSQL holds up the others.", 1, 60)
    ] = 3
    lock_seconds: Annotated[int, seconds("How long a write waits for a lock in PostgreSQL.", 1, 60)] = 4
    statement_seconds: Annotated[int, seconds("How long PostgreSQL may take for one statement.", 1, 600)] = 10
    standby_synchronous: Annotated[
        bool, SettingInfo("The standby is synchronous: a promotion loses nothing and need not end all tokens.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """The secrets that protect all others."""

    master_key: Annotated[
        Secret,
        text(
            "The 32-byte key that seals signing keys and other secrets; `gatehouse key init` writes one.",
            grammar.master_key,
            without="none: nothing starts",
            dev="`dev.key` in the data directory, made when missing",
        ),
    ] = NO_SECRET
    previous_master_keys: Annotated[
        tuple[Secret, ...],
        text(
            "Earlier master keys, which open what `gatehouse key rewrap` has not sealed anew yet.",
            grammar.master_key,
        ),
    ] = ()
    password_pepper: Annotated[
        Secret, long_secret("Mixed into password digests; once lost or changed, no password works any more.")
    ] = NO_SECRET


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordSettings:
    """What one guess at a stolen password digest costs (Argon2id)."""

    # The lower bounds are the least that is still sound (S-02).
    memory_kib: Annotated[int, number("Memory of one digest.", 19_456, 4_194_304, "KiB")] = 65_536
    time_cost: Annotated[int, number("Passes over that memory.", 2, 20)] = 3
    parallelism: Annotated[int, number("Lanes of one digest.", 1, 16)] = 1
    workers: Annotated[int, number("Digests a process computes at a time.", 1, 64)] = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySettings:
    """The keys that sign tokens."""

    rsa_bits: Annotated[Literal[2048, 3072], SettingInfo("Size of new RSA keys.", unit="bits")] = 2048
    rotate_days: Annotated[int, days("How long a key signs before the next one does.", high=730)] = 90
    publish_lead_seconds: Annotated[int, seconds("How long a new key is published before it signs.", 60, 43_200)] = (
        3600
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """Which JWTs are given out, and how long they live."""

    jwt_without_factor: Annotated[
        bool, SettingInfo("Give user JWTs to game clients that send no factor; they pass no factor check.")
    ] = False
    user_jwt_days: Annotated[int, days("Lifetime of a user JWT.")] = 90
    expired_grace_days: Annotated[
        int, days("How long an expired user JWT still names its user to a service.", low=0)
    ] = 30
    service_jwt_days: Annotated[int, days("Lifetime of a static service JWT.")] = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSettings:
    """People."""

    registration: Annotated[
        bool, SettingInfo("Let anyone make an account for an address of his; else by invitation only.", dev="`true`")
    ] = False
    allowed_domains: Annotated[
        tuple[str, ...], text("The only domains whose addresses may register; none means any.", grammar.domain)
    ] = ()
    breached_passwords: Annotated[
        str,
        text("File of stolen passwords that nobody may choose, `SHA-1:COUNT` by digest.", grammar.absolute_path),
    ] = ""
    geoip_file: Annotated[
        str,
        text("GeoIP database in MaxMind's format (.mmdb) that tells places by addresses.", grammar.absolute_path),
    ] = ""
    vendor_nick_field: Annotated[
        str, text("Name of the vendor nickname in login data.", grammar.login_data_field)
    ] = "ghnick"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """The SMTP server that takes our mail."""

    host: Annotated[
        str,
        text(
            "Its name or its network address.",
            grammar.listen_host,
            without="none: mail waits in the outbox",
            dev="none: mail is printed where the log is",
        ),
    ] = ""
    port: Annotated[int, number("Its port; mostly 587 with `starttls` and 465 with `tls`.", 1, 65_535)] = 587
    security: Annotated[
        Literal["starttls", "tls", "none"],
        SettingInfo("How the connection is encrypted; `none` is for a server on this machine only."),
    ] = "starttls"
    username: Annotated[str, SettingInfo("Whom to sign in as.", without="none: no sign-in")] = ""
    password: Annotated[Secret, SettingInfo("The password of `mail.username`.")] = NO_SECRET
    from_address: Annotated[
        str, text("The address mail comes from; needed when there is a server.", grammar.mail_address)
    ] = ""
    from_name: Annotated[
        str, SettingInfo("The name mail comes from, and what it calls the service.", without="`branding.name`")
    ] = ""
    timeout_seconds: Annotated[int, seconds("How long the server may take for each mail.", 1, 120)] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BrandingSettings:
    """What pages, mail and the console look like and call the service."""

    name: Annotated[
        str, text("What people know the service by, on every page and in authenticator apps.", grammar.brand_name)
    ] = "Gatehouse"
    logo: Annotated[
        str,
        text(
            "A PNG, JPEG or WebP file of up to 256 KiB, shown 28 pixels high; no SVG, which may carry scripts.",
            grammar.absolute_path,
            without="the mark of Gatehouse",
        ),
    ] = ""
    logo_dark: Annotated[str, text("The same for dark pages.", grammar.absolute_path, without="`branding.logo`")] = ""
    wordmark: Annotated[
        bool, SettingInfo("The logo spells the name itself: pages show it without the name beside it.")
    ] = False
    accent: Annotated[
        str,
        text(
            "Colour of links and buttons, like `#1d5f8a`; made darker or lighter where it would be hard to read.",
            grammar.color,
            without="the blue of Gatehouse",
        ),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """How long a browser stays signed in."""

    idle_hours: Annotated[int, number("Hours without a request after which a session ends.", 1, 8_760, "hours")] = 72
    absolute_days: Annotated[int, days("Days after which it ends in any case.")] = 30
    fresh_minutes: Annotated[
        int, number("Minutes for which a proof lets a person change how he signs in.", 1, 120, "minutes")
    ] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class GameSettings:
    """Game session login."""

    session_info_allow: Annotated[
        Networks, SettingInfo("Networks that may ask for a game session's info.", dev="`127.0.0.0/8`, `::1/128`")
    ] = ()
    retry_delay: Annotated[int, seconds("How long a client waits after RETRY before it polls again.", 1, 60)] = 1
    code_match: Annotated[
        bool, SettingInfo("Have every sign-in from another address pick the code that the game shows.")
    ] = False
    early_polls: Annotated[
        int, number("Polls before their time within a minute that block a game session.", 2, 100)
    ] = 5
    block_seconds: Annotated[
        int, seconds("How long it is blocked the first time; each further time twice as long.", 10, 3_600)
    ] = 60
    block_longest_seconds: Annotated[int, seconds("How long at most.", 60, 86_400)] = 3_600
    blocked_most: Annotated[
        int, number("Blocked game sessions of one address that block the whole address.", 2, 10_000)
    ] = 20
    pending_most: Annotated[
        int,
        number("Game sessions that may wait at a time; registering more is answered with 503.", 100, 100_000_000),
    ] = 1_000_000
    sockets_per_session: Annotated[int, number("WebSockets one game session may have open.", 1, 1_000)] = 8
    sockets_per_source: Annotated[int, number("WebSockets one source may have open at a process.", 1, 1_000_000)] = (
        2_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """OAuth and OpenID Connect."""

    code_seconds: Annotated[int, seconds("Lifetime of an authorization code.", 10, 600)] = 60
    refresh_grace_seconds: Annotated[
        int,
        seconds("How long a parallel refresh gets the same new token; 10 suits browser applications.", 0, 60),
    ] = 0
    refresh_family_days: Annotated[int, days("How long one sign-in can be refreshed at all.")] = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionSettings:
    """Permission endpoints."""

    always_200: Annotated[bool, SettingInfo("Answer errors with HTTP 200 too, for old clients.")] = False
    max_age_seconds: Annotated[
        int, seconds("How long a client may keep a permission list before it asks again.", 0, 300)
    ] = 2
    cache_mb: Annotated[
        int,
        number(
            "Megabytes of memory for permission models and what was evaluated from them, in each process.", 16, 65_536
        ),
    ] = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSettings:
    """Applications."""

    keys_dir: Annotated[
        str, text("Directory of applications' public keys, `<application id>/*.pem`.", grammar.absolute_path)
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundSettings:
    """Requests to addresses that other people chose."""

    allow: Annotated[
        Networks, SettingInfo("Networks that may be called although they are private, also by plain http.")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationsSettings:
    """Metrics, and the details behind the health checks."""

    bind: Annotated[str, text("A listener of their own, like `127.0.0.1:9090`.", grammar.bind)] = ""
    token: Annotated[Secret, long_secret("Bearer token that opens them on the ordinary listener.")] = NO_SECRET


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The log."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], SettingInfo("The least serious entry that is written.")
    ] = "info"
    format: Annotated[
        Literal["json", "console"], SettingInfo("One JSON object a line, or text for people.", dev="`console`")
    ] = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The audit log."""

    retention_days: Annotated[int, days("How long records are kept; 0 keeps them for ever.", low=0, high=36_500)] = (
        365
    )
    refusals_kept: Annotated[
        int, number("How many refused requests are kept, newest first.", 1000, 100_000_000, "records")
    ] = 100_000
    head_minutes: Annotated[
        int, number("How often the head of the log is logged and sent to webhooks; 0 for never.", 0, 1_440, "minutes")
    ] = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSettings:
    """How much one caller may ask, by class of endpoint."""

    enabled: Annotated[bool, SettingInfo("Refuse callers beyond these rates, with Retry-After.")] = True
    public: Annotated[int, per_minute("Pages, and whatever is not named below.")] = 1200
    login: Annotated[int, per_minute("Whatever takes a password or a one-time code.")] = 120
    token: Annotated[int, per_minute("OAuth token, userinfo, revocation and exchange.")] = 6000
    poll: Annotated[int, per_minute("Game sessions.")] = 6000
    admin: Annotated[int, per_minute("Permission endpoints and the console.")] = 6000
    keys: Annotated[int, per_minute("Public keys and discovery.")] = 6000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of them; read once at the start, never changed while the process runs."""

    server: ServerSettings = field(default_factory=ServerSettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    security: SecuritySettings = field(default_factory=SecuritySettings)
    passwords: PasswordSettings = field(default_factory=PasswordSettings)
    keys: KeySettings = field(default_factory=KeySettings)
    tokens: JwtSettings = field(default_factory=JwtSettings)
    accounts: AccountSettings = field(default_factory=AccountSettings)
    sessions: SessionSettings = field(default_factory=SessionSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    branding: BrandingSettings = field(default_factory=BrandingSettings)
    game: GameSettings = field(default_factory=GameSettings)
    oauth: OAuthSettings = field(default_factory=OAuthSettings)
    permissions: PermissionSettings = field(default_factory=PermissionSettings)
    applications: ApplicationSettings = field(default_factory=ApplicationSettings)
    outbound: OutboundSettings = field(default_factory=OutboundSettings)
    operations: OperationsSettings = field(default_factory=OperationsSettings)
    log: LogSettings = field(default_factory=LogSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    rates: RateSettings = field(default_factory=RateSettings)
