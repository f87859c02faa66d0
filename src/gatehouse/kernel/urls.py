"""Web addresses by a strict grammar of our own: general URL parsers forgive what others read differently.

What passes has one reading: a lower-case scheme, a plain host, a decimal port, then a path and a query of visible
ASCII. User-info, backslashes, white space and numbers posing as host names do not pass.
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
# Names that never lead out of a house: RFC 6761, RFC 6762, RFC 8375, and what clouds call their metadata.
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


def parse_web_url(text: str) -> WebUrl | None:
    """None for whatever is not exactly an http or https address."""
    found = WEB_URL.fullmatch(text) if len(text) <= MAX_URL_LENGTH else None
    if found is None:
        return None
    host = found["host"].lower()
    address = _address_of(host)
    port = int(found["port"] or DEFAULT_PORTS[found["scheme"]])
    if port > MAX_PORT or (address is None and not is_host_name(host)):
        return None
    return WebUrl(
        scheme=found["scheme"],
        host=host.strip("[]"),
        address=address,
        port=port,
        target=found["target"],
        fragment=found["fragment"] or "",
    )


def _address_of(host: str) -> Address | None:
    """Colons and brackets belong together: without them it is IPv4."""
    bare = host.strip("[]")
    return parse_address(bare) if ("[" in host) == (":" in bare) else None


def is_host_name(text: str) -> bool:
    """True for lower-case labels; a name that ends in a number is an IPv4 address to some, so it is none to us."""
    labels = text.split(".")
    return (
        len(text) <= MAX_HOST_LENGTH
        and all(LABEL.fullmatch(label) for label in labels)
        and not labels[-1][0].isdigit()
    )
