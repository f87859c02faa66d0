"""Which redirect targets a client may register and use: a strict grammar (R3).

A general URL parser is not used, because it accepts what browsers read differently.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import quote, unquote

from gatehouse.kernel.private_schemes import MAX_URI_LENGTH, has_domain_scheme, has_plain_scheme, is_private_use
from gatehouse.kernel.web_urls import is_host_name
from gatehouse.oauth.model import Client, ClientProfile

HOSTNAME: Final = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*"
PORT: Final = r":(?P<port>[1-9][0-9]{0,4})"
REST: Final = r"(?P<rest>(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?)"
WEB_URI: Final = re.compile(rf"(?P<scheme>https?)://(?P<host>{HOSTNAME}|\[::1\])({PORT})?{REST}", re.ASCII)
HOST: Final = re.compile(rf"(?P<host>{HOSTNAME}|\[::1\])({PORT})?", re.ASCII)
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
HIGHEST_PORT: Final = 65_535
# Parameters of responses (RFC 6749, RFC 9207, OpenID Connect Core and Session Management, JARM). In the query of a
# redirect URI the client would see the name twice and could use the wrong one (R3, checklist AZ-20).
RESPONSE_PARAMETERS: Final = frozenset(
    (
        *("code", "state", "iss", "error", "error_description", "error_uri", "id_token", "access_token"),
        *("token_type", "expires_in", "session_state", "response"),
    )
)
LOGOUT_PARAMETERS: Final = frozenset({"state"})  # the parameter that RP-initiated logout adds
ESCAPED: Final = re.compile(r"([^%]|%[0-9A-Fa-f]{2})*", re.ASCII)
NO_LETTER: Final = re.compile(r"[\W_]")
DEFAULT_PORTS: Final = {"https": "443", "http": "80"}


# A client_id that is the URL of a metadata document (draft-ietf-oauth-client-id-metadata-document §3): no query,
# fragment, user-info, percent-encoding or dot segment, so that one document has one spelling.
DOCUMENT_URL: Final = re.compile(
    rf"https://(?P<host>{HOSTNAME})({PORT})?(/(?!\.{{1,2}}(/|$))[A-Za-z0-9._~!$&'()*+,;=:@-]+)+/?", re.ASCII
)
MAX_DOCUMENT_URL_LENGTH: Final = 256


def document_host(client_id: str) -> str:
    """Return the host of the document's URL, with its port unless that is 443; "" for any other client_id."""
    parts = DOCUMENT_URL.fullmatch(client_id) if len(client_id) <= MAX_DOCUMENT_URL_LENGTH else None
    if parts is None or not is_host_name(parts["host"]) or not _port_fits(parts["port"]):
        return ""
    return parts["host"] if parts["port"] is None else f"{parts['host']}:{parts['port']}"


def is_document_redirect(host: str, uri: str, app_uris: Collection[str] = ()) -> bool:
    """Whether a document on this host may name the redirect URI: one of the same origin, or on loopback (R9).

    `app_uris`: those with a private-use scheme that administrators listed for the host (R11).
    """
    if uri in app_uris:
        return is_private_use(uri) and not reserved_parameter_in(uri)
    parts = WEB_URI.fullmatch(uri)
    if parts is None or not is_registrable_uri(uri) or reserved_parameter_in(uri):
        return False
    return parts["host"] in LOOPBACK or csp_source(uri) == f"https://{host}"


def is_registrable_uri(uri: str) -> bool:
    """True for https anywhere, http on loopback, or a private-use scheme; no user-info, fragment or tricks."""
    if len(uri) > MAX_URI_LENGTH:
        return False
    parts = WEB_URI.fullmatch(uri)
    if parts is None:
        return has_domain_scheme(uri)
    return _port_fits(parts["port"]) and (parts["scheme"] == "https" or parts["host"] in LOOPBACK)


def reserved_parameter_in(uri: str, reserved: frozenset[str] = RESPONSE_PARAMETERS) -> str:
    """Return the first name in the query that means a reserved one to some web framework, as written; "" for none.

    Frameworks differ: some fold case, PHP drops leading spaces and reads "." and "[" as "_", PHP, Rails and Express
    read code[] as code, others split at ";". So only letters and digits are compared, with and without what follows
    a bracket. A name that is not escaped UTF-8 text is refused too: frameworks differ about it most.
    """
    query = uri.partition("?")[2]
    if not query:
        return ""
    lettered = {_letters(name) for name in reserved}
    names = (part.partition("=")[0] for part in re.split("[&;]", query))
    return next((name for name in names if _is_unreadable(name) or lettered & _possible_names(name)), "")


def _is_unreadable(name: str) -> bool:
    if ESCAPED.fullmatch(name) is None:
        return True
    try:
        return not unquote(name, errors="strict").isprintable()
    except UnicodeDecodeError:
        return True


def _possible_names(name: str) -> frozenset[str]:
    plain = unquote(name)
    return frozenset({_letters(plain), _letters(plain.partition("[")[0])})


def _letters(name: str) -> str:
    return NO_LETTER.sub("", name.upper().casefold())


def is_registrable_host(host: str) -> bool:
    parts = HOST.fullmatch(host)
    return parts is not None and _port_fits(parts["port"])


def is_registrable_origin(origin: str) -> bool:
    """Whether it is an origin as browsers write it.

    Scheme, host, and a port other than the default (RFC 6454 §6.2).
    """
    parts = WEB_URI.fullmatch(origin)
    if parts is None or parts["rest"] or not is_registrable_uri(origin):
        return False
    return parts["port"] != {"https": "443", "http": "80"}[parts["scheme"]]


def _port_fits(port: str | None) -> bool:
    return port is None or int(port) <= HIGHEST_PORT


def is_registered_redirect(client: Client, uri: str) -> bool:
    """Whether the browser may be redirected there for this client.

    Exact URIs if there are any, otherwise hosts (R3).
    """
    if has_plain_scheme(uri):
        return client.profile is ClientProfile.OIDC and uri in client.redirect_uris and not reserved_parameter_in(uri)
    if not is_registrable_uri(uri) or reserved_parameter_in(uri):
        return False
    if not client.redirect_uris:
        return any(_is_on_host(host, uri) for host in client.redirect_hosts)
    any_port = client.public or client.has_document
    return uri in client.redirect_uris or (any_port and _without_port(uri) in _loopback_forms(client))


def _is_on_host(entry: str, uri: str) -> bool:
    """Compare the whole host name; only the default port is allowed, unless the entry names one."""
    allowed, asked = HOST.fullmatch(entry), WEB_URI.fullmatch(uri)
    if allowed is None or asked is None or asked["host"] != allowed["host"]:
        return False
    if allowed["port"] is None:
        return asked["port"] is None or asked["host"] in LOOPBACK
    return (asked["port"] or DEFAULT_PORTS[asked["scheme"]]) == allowed["port"]


def _loopback_forms(client: Client) -> frozenset[str]:
    """Return the loopback URIs without their ports: an installed application listens on any port (RFC 8252 §7.3)."""
    return frozenset(form for uri in client.redirect_uris if (form := _without_port(uri)) is not None)


def _without_port(uri: str) -> str | None:
    """Return a loopback URI without its port; None for any other URI."""
    parts = WEB_URI.fullmatch(uri)
    if parts is None or parts["host"] not in LOOPBACK:
        return None
    return f"{parts['scheme']}://{parts['host']}{parts['rest']}"


def is_web_uri(uri: str) -> bool:
    """Whether it is an http or https address, not an installed application's scheme."""
    return WEB_URI.fullmatch(uri) is not None


def is_on_device(uri: str) -> bool:
    """Whether it leads to a program on the person's device: by loopback, or by a private-use scheme."""
    return not is_web_uri(uri) or _without_port(uri) is not None


def display_host(uri: str) -> str:
    """Return the redirect target as people see it: the host, or an installed application's scheme."""
    parts = WEB_URI.fullmatch(uri)
    if parts is None:
        return uri.partition(":")[0]
    return parts["host"] if parts["port"] is None else f"{parts['host']}:{parts['port']}"


def csp_source(uri: str) -> str:
    """Return the redirect target for a Content-Security-Policy: an origin, or a scheme without a host.

    A policy cannot name an IPv6 address (CSP3 §2.3.1), so that one is named by its port alone.
    """
    parts = WEB_URI.fullmatch(uri)
    if parts is None:
        return f"{uri.partition(':')[0]}:"
    host = "*" if parts["host"].startswith("[") else parts["host"]
    return f"{parts['scheme']}://{host}" if parts["port"] is None else f"{parts['scheme']}://{host}:{parts['port']}"


def web_root(uri: str) -> str:
    """Return the first page of the site of a redirect URI; empty for an app, and for a site on this machine."""
    source = csp_source(uri)
    return f"{source}/" if source.startswith("https://") and "*" not in source else ""


def with_query(uri: str, parameters: Mapping[str, str]) -> str:
    """Add response parameters to a verified redirect URI and keep its own query.

    The names are plain and not in its query yet (reserved_parameter_in); the values may be anything.
    """
    joint = "?" if "?" not in uri else "" if uri.endswith(("?", "&")) else "&"
    return f"{uri}{joint}" + "&".join([f"{name}={quote(value, safe='')}" for name, value in parameters.items()])
