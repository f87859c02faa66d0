"""Parses web addresses by a strict grammar: general URL parsers accept what others read differently.

An accepted address has one reading: a lower-case scheme, a plain host, a decimal port, then a path and a query of
visible ASCII. User-info, backslashes, white space and numbers as host names are refused.
"""

import re
from dataclasses import dataclass
from typing import Final

from gatehouse.kernel.addresses import Address, parse_address

MAX_URL_LENGTH: Final = 2_048
MAX_HOST_LENGTH: Final = 253
MAX_PORT: Final = 65_535
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

VISIBLE: Final = r"A-Za-z0-9._~!$&'()*+,;=:@%/-"
WEB_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:(?P<port>[1-9][0-9]{0,4}))?"
    rf"(?P<target>(/[{VISIBLE}]*)?(\?[{VISIBLE}?]*)?)(?P<fragment>#[{VISIBLE}?]*)?",
    re.ASCII,
)
LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
# Names that are never public: RFC 6761, RFC 6762, RFC 8375, and the metadata servers of clouds.
INTERNAL_NAMES: Final = ("localhost", "localdomain", "local", "internal", "home.arpa")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebUrl:
    scheme: str
    host: str  # lower case; an IPv6 address without its brackets
    address: Address | None  # when the host is one, an IPv4 address however it is wrapped
    port: int
    target: str  # path and query
    fragment: str = ""

    @property
    def is_internal_name(self) -> bool:
        """True for a name that only means something inside a network, such as localhost or a single label."""
        if self.address is not None:
            return False
        return "." not in self.host or any(self.host.endswith(f".{name}") for name in INTERNAL_NAMES)


def parse_web_url(text: str, *, max_length: int = MAX_URL_LENGTH) -> WebUrl | None:
    """Parse a URL; None for anything that is not exactly an http or https address."""
    match = WEB_URL.fullmatch(text) if len(text) <= max_length else None
    if match is None:
        return None
    host = match["host"].lower()
    address = _address_of(host)
    port = int(match["port"] or DEFAULT_PORTS[match["scheme"]])
    if port > MAX_PORT or (address is None and not is_host_name(host)):
        return None
    return WebUrl(
        scheme=match["scheme"],
        host=host.strip("[]"),
        address=address,
        port=port,
        target=match["target"],
        fragment=match["fragment"] or "",
    )


# More than `WEB_URL` accepts: a reader of such a text may see an origin in it. Browsers read any number of slashes.
APPARENT_ORIGIN: Final = re.compile(r"(?P<scheme>https?):/*(?P<authority>[^/?#]*)", re.DOTALL)
APPARENT_HOST: Final = re.compile(r"(?:.*@)?(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>.*))?", re.DOTALL)
ESCAPED: Final = re.compile(r"%([0-9a-f]{2})", re.ASCII)


def apparent_origin(uri: str) -> str:
    """Return the origin of a web address, however it is written; "" for other URIs.

    Case, slashes, escapes, user info, a dot behind the host, zeros before the port and a default port make no
    difference.
    """
    match = APPARENT_ORIGIN.match(uri.lower())
    if match is None:
        return ""
    authority = ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), match["authority"]).lower()
    parts = APPARENT_HOST.fullmatch(authority)
    if parts is None:
        return ""
    number = (parts["port"] or "").lstrip("0")
    port = "" if number in ("", str(DEFAULT_PORTS[match["scheme"]])) else f":{number}"
    return f"{match['scheme']}://{parts['host'].rstrip('.')}{port}"


def is_at_origin(uri: str, origin: str) -> bool:
    """Whether the URI is the origin or something below it, however it is written."""
    return bool(apparent_origin(uri)) and apparent_origin(uri) == apparent_origin(origin)


def _address_of(host: str) -> Address | None:
    """Return the address of a host; an IPv6 address must be in brackets."""
    bare = host.strip("[]")
    return parse_address(bare) if ("[" in host) == (":" in bare) else None


def is_host_name(text: str) -> bool:
    """Whether it has lower-case labels.

    A name that ends in a number is refused, because some parsers read it as IPv4.
    """
    labels = text.split(".")
    return (
        len(text) <= MAX_HOST_LENGTH
        and all(LABEL.fullmatch(label) for label in labels)
        and not labels[-1][0].isdigit()
    )
