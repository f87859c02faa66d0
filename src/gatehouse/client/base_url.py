"""Where the service is. Byte for byte the issuer of its tokens, so it is taken as it stands or not at all (R0)."""

import re
from dataclasses import dataclass
from typing import Final

BASE_URL_PATTERN: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9.-]{1,253}|\[[0-9a-f:.]+\])(?::(?P<port>[1-9][0-9]{0,4}))?", re.ASCII
)
LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """What to connect to."""

    secure: bool
    host: str
    port: int


def parse_base_url(text: str) -> ServerAddress:
    """Raise ValueError unless it is an origin, with https wherever a network lies between."""
    found = BASE_URL_PATTERN.fullmatch(text)
    if found is None:
        raise ValueError(
            "base_url must be scheme and host, like https://sso.studio.example, without path or trailing slash"
        )
    scheme, host = found["scheme"], found["host"]
    if scheme == "http" and host not in LOOPBACK_HOSTS:
        raise ValueError("base_url must be https: plain http would send tokens and keys unencrypted")
    return ServerAddress(
        secure=scheme == "https", host=host.strip("[]"), port=int(found["port"] or DEFAULT_PORTS[scheme])
    )
