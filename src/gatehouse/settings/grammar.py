"""Strict grammars for the text of settings.

Each function raises ValueError with a text that follows "<name>: "; for settings that the console changes it is
BadSetting, which has a text for screens too.
"""

import re
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct

from gatehouse.accounts.phones.numbers import CALLING_CODES
from gatehouse.kernel.addresses import Network, parse_address, parse_network
from gatehouse.kernel.errors import Misconfigured
from gatehouse.kernel.graphics import Color
from gatehouse.kernel.private_schemes import is_private_use
from gatehouse.kernel.public_suffixes import is_public_suffix
from gatehouse.kernel.stored_settings import BadSetting
from gatehouse.kernel.web_urls import DEFAULT_PORTS, MAX_PORT, is_host_name
from gatehouse.keys.sealing import parse_master_key
from gatehouse.languages import LANGUAGES
from gatehouse.mail.model import is_mailable

ORIGIN: Final = re.compile(r"([a-z]+)://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([1-9][0-9]{0,4}))?", re.ASCII)
BIND: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9.-]+):([1-9][0-9]{0,4})", re.ASCII)
PORT: Final = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
FIELD_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,31}", re.ASCII)
POSTGRESQL: Final = re.compile(r"postgresql://[^/?#\s]+/[^/?#\s]+(?:\?[^#\s]*)?", re.ASCII)
SQLITE: Final = re.compile(r"sqlite:///[^?#]+")

MAX_BRAND_NAME_LENGTH: Final = 40

# The vendor nickname is added to these fields of the login data (R1) and must not replace one of them.
# fmt: off
LOGIN_DATA_FIELDS: Final = frozenset({
    "auth", "country", "delay", "error", "factor", "gsid", "jwt", "lang", "last_seen", "level", "login",
    "meta", "nick", "reg_time", "started", "status", "stoken", "tags", "token", "token_exp", "ts", "user_id",
})
# fmt: on


class UrlOrigin(Struct, frozen=True, kw_only=True):
    scheme: str
    host: str  # an IPv6 address keeps its brackets

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)


def parse_origin(text: str, *schemes: str) -> UrlOrigin:
    """Parse scheme, host and optional port in the one spelling that clients compare byte for byte (R0)."""
    found = ORIGIN.fullmatch(text)
    if found is None or found[1] not in schemes:
        raise ValueError(
            f"must be {schemes[-1]}://host or {schemes[-1]}://host:port in lower case, without path, trailing "
            f"slash, query or user name, not {text!r}"
        )
    check_host(found[2])
    check_port(found[1], found[3])
    return UrlOrigin(scheme=found[1], host=found[2])


def check_port(scheme: str, digits: str | None) -> None:
    if digits is None:
        return
    if int(digits) > MAX_PORT:
        raise ValueError(f"has a port above {MAX_PORT}")
    if int(digits) == DEFAULT_PORTS[scheme.replace("ws", "http")]:
        # Browsers drop it from Origin, so the two spellings would never be equal.
        raise ValueError(f"must omit :{digits}, the default port of {scheme}")


def check_host(host: str) -> None:
    """Check a host name, an IPv4 address, or an IPv6 address in brackets, in canonical spelling."""
    if host.startswith("["):
        address = parse_address(host[1:-1])
        if address is None or host != f"[{address}]":
            raise ValueError(f"contains {host!r} where an IPv6 address in its shortest form is expected")
    elif parse_address(host) is None and not is_host_name(host):
        raise ValueError(f"contains {host!r} where a host name or address is expected")


def is_loopback(host: str) -> bool:
    address = parse_address(host.removeprefix("[").removesuffix("]"))
    return host == "localhost" if address is None else address.is_loopback


def base_url(text: str) -> None:
    parse_origin(text, "http", "https")


def ws_url(text: str) -> None:
    parse_origin(text, "ws", "wss")


def ws_url_of(base_url: str) -> str:
    return f"ws{base_url.removeprefix('http')}"


def listen_host(text: str) -> None:
    if parse_address(text) is None and not is_host_name(text):
        raise BadSetting(f"must be an address or a host name, not {text!r}").on_screen("host")


def bind(text: str) -> None:
    found = BIND.fullmatch(text)
    if found is None or int(found[2]) > MAX_PORT:
        raise ValueError(f"must be address:port, not {text!r}")
    check_host(found[1])


def absolute_path(text: str) -> None:
    if not PurePosixPath(text).is_absolute():
        raise ValueError(f"must be an absolute path, not {text!r}")


def mail_address(text: str) -> None:
    if not (text.isascii() and is_mailable(text)):
        raise BadSetting(f"must be an email address like gatehouse@studio.example, not {text!r}").on_screen(
            "sender_address"
        )


def phone_country(text: str) -> None:
    if text not in CALLING_CODES:
        raise BadSetting(f"must be a country as two capital letters like DE, not {text!r:.20}").on_screen(
            "phone_country_code"
        )


def brand_name(text: str) -> None:
    if not 0 < len(text) <= MAX_BRAND_NAME_LENGTH or text != text.strip():
        raise BadSetting(f"must be a name of 1 to {MAX_BRAND_NAME_LENGTH} characters, not {text!r:.60}").on_screen(
            "text_length", shortest=1, longest=MAX_BRAND_NAME_LENGTH
        )


def color(text: str) -> None:
    try:
        Color.parse(text)
    except ValueError as error:
        raise BadSetting(str(error)).on_screen("color") from None


def domain(text: str) -> None:
    if not is_host_name(text):
        raise BadSetting(f"must be a domain like studio.example in lower case, not {text!r}").on_screen("domain")


def https_host(text: str) -> None:
    host, colon, port = text.partition(":")
    if not is_host_name(host) or (colon and PORT.fullmatch(port) is None):
        raise ValueError(f"must be a host name like client.example or client.example:8443, not {text!r}")
    check_port("https", port or None)


def https_origin(text: str) -> None:
    try:
        parse_origin(text, "https")
    except ValueError:
        raise BadSetting(f"must be an origin like https://sso.studio.example, not {text!r}").on_screen(
            "https_origin"
        ) from None


def passkey_host(text: str) -> None:
    """Check a host for passkeys: browsers take none that is an address, or that names of many owners end in."""
    if parse_address(text) is not None or not is_host_name(text):
        raise ValueError(f"must be a host name like sso.studio.example, not {text!r}")
    if text != "localhost" and ("." not in text or is_public_suffix(text)):
        raise ValueError(f"must not be {text}: names below it belong to many owners")


def document_host(text: str) -> None:
    """Check a host of client ID metadata documents: exact, or one level of subdomains of a name."""
    name = text.removeprefix("*.")
    refuse_bad_https_host(name)
    if name == text:
        return
    host = name.partition(":")[0]
    if "." not in host or is_public_suffix(host):
        raise BadSetting(f"subdomains of {host} belong to many owners: list exact hosts instead").on_screen(
            "public_suffix", host=host
        )


def document_app_uri(text: str) -> None:
    """Check a redirect URI with a private-use scheme that documents on one host may name."""
    host, _, uri = text.partition("=")
    refuse_bad_https_host(host)
    if not is_private_use(uri):
        raise BadSetting(
            f"must be a host and a URI, like client.example=com.example.app:/callback, not {text!r}"
        ).on_screen("document_app_uri")


def refuse_bad_https_host(text: str) -> None:
    try:
        https_host(text)
    except ValueError as error:
        raise BadSetting(str(error)).on_screen("https_host") from None


def login_data_field(text: str) -> None:
    if not FIELD_NAME.fullmatch(text):
        raise ValueError(f"must be a letter followed by up to 31 letters, digits or underscores, not {text!r}")
    if text in LOGIN_DATA_FIELDS:
        raise ValueError(f"must not be {text!r}: the login data already has that field")


def database_url(text: str) -> None:
    if not (SQLITE.fullmatch(text) or POSTGRESQL.fullmatch(text)):
        raise ValueError("must be sqlite:///PATH or postgresql://USER@HOST/DATABASE")


def postgresql_url(text: str) -> None:
    if not POSTGRESQL.fullmatch(text):
        raise ValueError("must be postgresql://USER@HOST/DATABASE")


def master_key(text: str) -> None:
    try:
        parse_master_key(text)
    except Misconfigured as error:
        raise ValueError(error.detail) from None


def network(text: str) -> Network:
    """Callers are compared as IPv4 when possible, so a mapped network would silently match no address."""
    parsed = parse_network(text)
    if "%" in text or (parsed.version == 6 and parsed.network_address.ipv4_mapped is not None):  # noqa: PLR2004
        raise ValueError(f"{text!r} must be written as a plain IPv4 or IPv6 network")
    return parsed


def language(text: str) -> None:
    if text not in LANGUAGES:
        names = ", ".join(LANGUAGES)
        raise BadSetting(f"must be one of {names}").on_screen("one_of", names=names)
