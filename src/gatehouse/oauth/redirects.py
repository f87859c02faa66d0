"""Which redirect targets a client may register: a strict grammar of our own (R3).

Never a general URL parser: those forgive what browsers read differently.
"""

import re
from typing import Final

URI_LONGEST: Final = 2_048
HOSTNAME: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*"
PORT: Final = r":(?P<port>[1-9][0-9]{0,4})"
REST: Final = r"(?P<rest>(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?)"
WEB_URI: Final = re.compile(rf"(?P<scheme>https?)://(?P<host>{HOSTNAME}|\[::1\])({PORT})?{REST}", re.ASCII)
# A private-use scheme for an installed application, reversed domain name style (RFC 8252 §7.1).
APP_URI: Final = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*", re.ASCII)
HOST: Final = re.compile(rf"(?P<host>{HOSTNAME}|\[::1\])({PORT})?", re.ASCII)
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
HIGHEST_PORT: Final = 65_535


def is_registrable_uri(uri: str) -> bool:
    """True for https anywhere, http on loopback, or a private-use scheme; no user-info, fragment or tricks."""
    if len(uri) > URI_LONGEST:
        return False
    parts = WEB_URI.fullmatch(uri)
    if parts is None:
        return APP_URI.fullmatch(uri) is not None
    return _port_fits(parts["port"]) and (parts["scheme"] == "https" or parts["host"] in LOOPBACK)


def is_registrable_host(host: str) -> bool:
    parts = HOST.fullmatch(host)
    return parts is not None and _port_fits(parts["port"])


def _port_fits(port: str | None) -> bool:
    return port is None or int(port) <= HIGHEST_PORT
