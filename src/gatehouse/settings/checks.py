"""Checks between settings, and between settings and their environment.

Each check raises ValueError with a text that follows "<name>: "; of a setting that the console changes it is
BadSetting, which has a text for screens too. Without --dev nothing unsafe starts; with --dev
nothing is reachable from another machine (R8, checklist OP-01).
"""

import ssl
from collections.abc import Callable
from enum import StrEnum
from io import SEEK_END
from pathlib import Path
from typing import Final

from msgspec import Struct

from gatehouse.accounts.password_rules import BreachedPasswordFile
from gatehouse.accounts.phones.message_call import MessageCall, is_complete, read_headers
from gatehouse.kernel.errors import Misconfigured
from gatehouse.kernel.image_types import image_media_type
from gatehouse.kernel.stored_settings import BadSetting, referenced_image
from gatehouse.settings.grammar import UrlOrigin, is_loopback, parse_origin, ws_url_of
from gatehouse.settings.info import MIN_SECRET_LENGTH
from gatehouse.settings.model import PhoneSettings, Settings
from gatehouse.settings.secret import Secret
from gatehouse.settings.secret_files import DEV_KEY_FILE, path_exists

MIN_DISTINCT_CHARACTERS: Final = 10
GEOIP_METADATA_MARKER: Final = b"\xab\xcd\xefMaxMind.com"  # before the metadata at the end of the file
GEOIP_METADATA_BYTES: Final = 128 * 1_024  # bytes; MaxMind DB format, "Database Metadata"
MAX_LOGO_BYTES: Final = 256 * 1_024  # every page shows it
MAX_RELATED_ORIGINS: Final = 20
MAX_SECURITY_TXT_BYTES: Final = 16 * 1_024
SECURITY_TXT_FIELDS: Final = ("Contact", "Expires")  # RFC 9116 §2.5 requires these two
EXAMPLE_WORDS: Final = ("changeme", "example", "replaceme", "password", "secret", "12345678")


class LoadPurpose(StrEnum):
    """What the settings are read for."""

    COMMAND = "command"
    SERVE = "serve"  # needs base_url; other commands read it from the database (R8)
    REWRAP = "rewrap"  # the way out of --dev: opens what dev.key sealed


class Candidate(Struct, frozen=True, kw_only=True):
    """Settings that are not checked yet."""

    settings: Settings
    data: Path
    dev: bool
    purpose: LoadPurpose

    @property
    def dev_key(self) -> Path:
        return self.data / DEV_KEY_FILE


def data_directory_is_not_from_dev(candidate: Candidate) -> None:
    if candidate.dev or candidate.purpose is LoadPurpose.REWRAP or not path_exists(candidate.dev_key):
        return
    raise ValueError(
        f"{candidate.dev_key} shows that this data directory was created with --dev; to move to production: "
        "create a master key file with `gatehouse key init`, set GATEHOUSE__SECURITY__MASTER_KEY__FILE to it, "
        f"run `gatehouse key rewrap`, then delete {DEV_KEY_FILE}"
    )


def master_key_is_given(candidate: Candidate) -> None:
    if not candidate.dev and not candidate.settings.security.master_key:
        raise ValueError(
            "is missing; create a key file with `gatehouse key init` and set "
            "GATEHOUSE__SECURITY__MASTER_KEY__FILE to it (or try Gatehouse with --dev)"
        )


def pepper_is_strong(candidate: Candidate) -> None:
    secret_is_strong(candidate, candidate.settings.security.password_pepper)


def operations_token_is_strong(candidate: Candidate) -> None:
    secret_is_strong(candidate, candidate.settings.operations.token)


def secret_is_strong(candidate: Candidate, secret: Secret) -> None:
    text = secret.reveal()
    if candidate.dev or not text:
        return
    if len(text) < MIN_SECRET_LENGTH:
        raise ValueError(f"is shorter than {MIN_SECRET_LENGTH} characters")
    letters = text.lower().replace("-", "").replace("_", "")
    if len(set(text)) < MIN_DISTINCT_CHARACTERS or any(word in letters for word in EXAMPLE_WORDS):
        raise ValueError("looks like an example; generate a random value")


def base_url_is_given(candidate: Candidate) -> None:
    if candidate.purpose is LoadPurpose.SERVE and not candidate.settings.server.base_url:
        raise ValueError("is missing; set it to the https address clients will use (or try Gatehouse with --dev)")


def base_url_is_safe(candidate: Candidate) -> None:
    url = candidate.settings.server.base_url
    if url:
        origin_is_safe(candidate, parse_origin(url, "http", "https"))


def ws_url_is_safe(candidate: Candidate) -> None:
    server = candidate.settings.server
    if server.ws_url and server.ws_url != ws_url_of(server.base_url):  # then the error is in base_url
        origin_is_safe(candidate, parse_origin(server.ws_url, "ws", "wss"))


def origin_is_safe(candidate: Candidate, origin: UrlOrigin) -> None:
    if candidate.dev and not origin.is_loopback:
        raise ValueError(f"must be on localhost, 127.0.0.0/8 or [::1] with --dev, not on {origin.host}")
    if not candidate.dev and origin.scheme in {"http", "ws"}:
        raise ValueError(f"must be {origin.scheme}s: passwords and tokens would be sent unencrypted")


def dev_listens_on_loopback(candidate: Candidate) -> None:
    host = candidate.settings.server.host
    if candidate.dev and not is_loopback(host):
        raise ValueError(f"must be localhost, in 127.0.0.0/8 or ::1 with --dev, not {host}")


def sqlite_has_one_worker(candidate: Candidate) -> None:
    if candidate.settings.server.workers > 1 and candidate.settings.database.url.is_sqlite:
        raise ValueError("must be 1 with SQLite; more processes need PostgreSQL")


def listening_needs_postgresql(candidate: Candidate) -> None:
    if candidate.settings.database.listen_url and candidate.settings.database.url.is_sqlite:
        raise ValueError("has no effect with SQLite; remove it, or set database.url")


def pool_bounds_are_in_order(candidate: Candidate) -> None:
    database = candidate.settings.database
    if database.pool_min > database.pool_max:
        raise ValueError(f"must not be above database.pool_max, which is {database.pool_max}")


def keys_directory_exists(candidate: Candidate) -> None:
    path = candidate.settings.applications.keys_dir
    if path and not Path(path).is_dir():
        raise ValueError(f"{path} is not a directory")


def breached_file_is_valid(candidate: Candidate) -> None:
    path = candidate.settings.accounts.breached_passwords
    try:
        if path:
            BreachedPasswordFile(Path(path)).refuse_invalid_format()
    except Misconfigured as error:
        raise ValueError(str(error)) from None


def geoip_file_is_valid(candidate: Candidate) -> None:
    path = candidate.settings.accounts.geoip_file
    try:
        if path and GEOIP_METADATA_MARKER not in read_end(Path(path), GEOIP_METADATA_BYTES):
            raise ValueError(f"{path} is not a MaxMind database")
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None


def read_end(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, SEEK_END) - length))
        return file.read()


def logo_is_an_image(candidate: Candidate) -> None:
    file_is_an_image(candidate.settings.branding.logo)


def dark_logo_is_an_image(candidate: Candidate) -> None:
    file_is_an_image(candidate.settings.branding.logo_dark)


def dark_logo_goes_with_a_logo(candidate: Candidate) -> None:
    branding = candidate.settings.branding
    if branding.logo_dark and not branding.logo:
        raise BadSetting("needs branding.logo too, for the light theme").on_screen("light_logo_first")


def wordmark_has_a_logo(candidate: Candidate) -> None:
    branding = candidate.settings.branding
    if branding.wordmark and not branding.logo:
        raise BadSetting("needs a branding.logo that contains the name").on_screen("wordmark_logo")


def file_is_an_image(path: str) -> None:
    if referenced_image(path):  # of the database: it was encoded anew when it was stored
        return
    try:
        content = read_start(Path(path), MAX_LOGO_BYTES + 1) if path else b""
    except OSError as error:
        raise BadSetting(f"cannot read {path}: {error.strerror}").on_screen("logo_unreadable", path=path) from None
    if path and not image_media_type(content):
        raise BadSetting(f"{path} is not a PNG, JPEG or WebP image").on_screen("logo_format", path=path)
    if len(content) > MAX_LOGO_BYTES:
        kib = MAX_LOGO_BYTES // 1_024
        raise BadSetting(f"{path} is larger than {kib} KiB").on_screen("logo_size", path=path, kib=kib)


def read_start(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        return file.read(length)


def ca_file_has_certificates(candidate: Candidate) -> None:
    path = candidate.settings.outbound.ca_file
    try:
        if path:
            ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise ValueError(f"{path} has no certificates in PEM format") from None
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None


def security_txt_is_complete(candidate: Candidate) -> None:
    path = candidate.settings.operations.security_txt
    if not path:
        return
    try:
        content = read_start(Path(path), MAX_SECURITY_TXT_BYTES + 1)
        lines = content.decode("utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    if len(content) > MAX_SECURITY_TXT_BYTES:
        raise ValueError(f"{path} is larger than {MAX_SECURITY_TXT_BYTES // 1_024} KiB")
    names = {line.partition(":")[0].lower() for line in lines if ":" in line}
    missing = [f"{name}:" for name in SECURITY_TXT_FIELDS if name.lower() not in names]
    if missing:
        raise ValueError(f"{path} has no line {' and no line '.join(missing)}")


def password_is_replaced(candidate: Candidate) -> None:
    accounts = candidate.settings.accounts
    if accounts.password_optional and not accounts.email_sign_in:
        raise BadSetting("needs accounts.email_sign_in, or people who register could not sign in again").on_screen(
            "password_replacement"
        )


def mail_has_a_sender(candidate: Candidate) -> None:
    mail = candidate.settings.mail
    if mail.host and not mail.from_address:
        raise BadSetting("is missing; mail.host needs a sender address").on_screen("sender_missing")


def mail_is_encrypted(candidate: Candidate) -> None:
    mail = candidate.settings.mail
    if mail.host and mail.security == "none" and not is_loopback(mail.host):
        raise BadSetting(
            f"must not be none for {mail.host}: links that grant account access would be sent unencrypted"
        ).on_screen("mail_unencrypted", host=mail.host)


def mail_credentials_are_complete(candidate: Candidate) -> None:
    mail = candidate.settings.mail
    if bool(mail.username) != bool(mail.password):
        raise BadSetting("needs mail.username and vice versa: set both or neither").on_screen("mail_credentials")


def text_messages_are_complete(candidate: Candidate) -> None:
    phone = candidate.settings.phone
    if phone.sender in {"json", "custom"} and not phone.url:
        raise BadSetting("needs phone.url, where messages are sent").on_screen("phone_url")
    if phone.sender in {"twilio", "vonage", "messagebird"} and not (phone.secret and phone.sender_id):
        raise BadSetting("needs phone.secret and phone.sender_id").on_screen("phone_sender")
    if phone.sender in {"twilio", "vonage"} and not phone.account:
        raise BadSetting("needs phone.account").on_screen("phone_account")
    call = custom_call(phone)
    if phone.sender == "custom" and not is_complete(call):
        raise BadSetting("needs {text}, and {to} or {digits}, in phone.body or the query of phone.url").on_screen(
            "phone_call"
        )


def custom_call(phone: PhoneSettings) -> MessageCall:
    return MessageCall(url=phone.url, method=phone.method, headers=read_headers(phone.headers), body=phone.body)


def related_origins_are_few(candidate: Candidate) -> None:
    listed = len(candidate.settings.passkeys.related_origins)
    if listed > MAX_RELATED_ORIGINS:
        raise BadSetting(f"at most {MAX_RELATED_ORIGINS}, not {listed}").on_screen(
            "entries_most", most=MAX_RELATED_ORIGINS
        )


Check = Callable[[Candidate], None]


# Each with the setting it is about; skipped when that setting already has an error.
def default_language_is_offered(candidate: Candidate) -> None:
    languages = candidate.settings.languages
    if languages.offered and languages.default not in languages.offered:
        raise BadSetting("must be one of languages.offered").on_screen("language_not_offered")


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("--data", data_directory_is_not_from_dev),
    ("security.master_key", master_key_is_given),
    ("security.password_pepper", pepper_is_strong),
    ("operations.token", operations_token_is_strong),
    ("operations.security_txt", security_txt_is_complete),
    ("server.base_url", base_url_is_given),
    ("server.base_url", base_url_is_safe),
    ("server.ws_url", ws_url_is_safe),
    ("server.host", dev_listens_on_loopback),
    ("server.workers", sqlite_has_one_worker),
    ("database.listen_url", listening_needs_postgresql),
    ("database.pool_min", pool_bounds_are_in_order),
    ("applications.keys_dir", keys_directory_exists),
    ("accounts.password_optional", password_is_replaced),
    ("accounts.breached_passwords", breached_file_is_valid),
    ("accounts.geoip_file", geoip_file_is_valid),
    ("branding.logo", logo_is_an_image),
    ("branding.logo_dark", dark_logo_is_an_image),
    ("branding.logo_dark", dark_logo_goes_with_a_logo),
    ("branding.wordmark", wordmark_has_a_logo),
    ("outbound.ca_file", ca_file_has_certificates),
    ("languages.default", default_language_is_offered),
    ("phone.sender", text_messages_are_complete),
    ("passkeys.related_origins", related_origins_are_few),
    ("mail.from_address", mail_has_a_sender),
    ("mail.security", mail_is_encrypted),
    ("mail.password", mail_credentials_are_complete),
)
