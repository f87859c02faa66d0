"""The API that an application declares: its resource, its scopes, and which clients may ask for them (R9)."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec import Struct

from gatehouse.kernel.web_urls import apparent_origin, is_at_origin
from gatehouse.permissions.documents.fields import (
    printable,
    read_line,
    read_lines,
    read_list,
    read_members,
    read_number,
    refuse_repeated,
)
from gatehouse.permissions.errors import Malformed

MAX_RESOURCE_LENGTH: Final = 256
MAX_API_SCOPES: Final = 100
MAX_API_CLIENTS: Final = 100
MAX_SCOPE_TITLE: Final = 64
MAX_SCOPE_DESCRIPTION: Final = 256
MIN_TOKEN_SECONDS: Final = 60
MAX_TOKEN_SECONDS: Final = 3_600

# An absolute URI without fragment (RFC 8707 §2): a scheme, and printable ASCII that needs no escaping in a header.
RESOURCE: Final = re.compile(r"[a-z][a-z0-9+.-]{1,31}:[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+", re.ASCII)
API_SCOPE: Final = re.compile(r"[a-z][a-z0-9_-]*([.:][a-z0-9_-]+)*", re.ASCII)
MAX_SCOPE_LENGTH: Final = 64
# A client ID, with or without `client:`; digits alone are the user ID of a service account.
CLIENT: Final = re.compile(r"(client:)?[A-Za-z0-9._~-]{1,64}", re.ASCII)
ACCESS: Final = ("own", "listed", "any")
ACT: Final = ("refused", "accepted")
# Names that OpenID Connect or the service itself gives a meaning.
RESERVED_SCOPES: Final = frozenset(
    {
        *("openid", "offline_access", "email", "profile", "trust", "address", "phone"),
        *("groups", "roles", "permissions"),
        *("authzen", "objects", "scim"),  # of the service's own API (R11)
    }
)
RESERVED_SCOPE_PREFIX: Final = "delegate:"  # of the programs that act for a person (R11)


class ReservedResources(Struct, frozen=True, kw_only=True):
    """Addresses that no application may declare: this service, and hosts of client ID metadata documents."""

    base_url: str = ""
    document_hosts: Callable[[], Collection[str]] = tuple

    def is_own(self, resource: str) -> bool:
        """Whether it is this service, or something below it."""
        return is_at_origin(resource, self.base_url)

    def is_document_host(self, resource: str) -> bool:
        """Whether client ID metadata documents come from its host; `*.host` allows one level of subdomains."""
        origin = apparent_origin(resource)
        host = without_port(origin.removeprefix("https://")) if origin.startswith("https://") else ""
        return bool(
            {host, f"*.{host.partition('.')[2]}"}
            & {without_port(document_host) for document_host in self.document_hosts()}
        )

    def refuse(self, resource: str, place: str) -> None:
        """Raise Malformed for an address that is reserved."""
        if self.is_own(resource):
            raise Malformed(f"{place}: this address belongs to this service").on_screen("resource_own")
        if self.is_document_host(resource):
            raise Malformed(f"{place}: client ID metadata documents come from this host").on_screen(
                "resource_document"
            )


def without_port(host: str) -> str:
    """Return the host without its port: all ports may be of one owner."""
    return host.partition(":")[0]


NOTHING_RESERVED: Final = ReservedResources()


def check_api(document: object, place: str) -> dict[str, object] | None:
    """Check the declaration of an API; None for none. Raises Malformed."""
    if document is None:
        return None
    members = read_members(document, place, ("resource", "scopes", "access", "clients", "token_seconds", "act"))
    checked: dict[str, object] = {"resource": check_resource(members.get("resource"), f"{place}.resource")}
    if members.get("scopes") is not None:
        checked["scopes"] = _scopes(members["scopes"], f"{place}.scopes")
    if members.get("access") is not None:
        checked["access"] = _access(members["access"], f"{place}.access")
    if members.get("clients") is not None:
        checked["clients"] = _clients(members["clients"], f"{place}.clients", checked.get("access"))
    if members.get("token_seconds") is not None:
        checked["token_seconds"] = _token_seconds(members["token_seconds"], f"{place}.token_seconds")
    if members.get("act") is not None:
        checked["act"] = _act(members["act"], f"{place}.act")
    return checked


def check_resource(value: object, place: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_RESOURCE_LENGTH or RESOURCE.fullmatch(value) is None:
        raise Malformed(
            f"{place}: must be an absolute URI of at most {MAX_RESOURCE_LENGTH} characters, without fragment"
        )
    return value


def _scopes(document: object, place: str) -> dict[str, dict[str, str]]:
    members = read_members(document, place)
    if len(members) > MAX_API_SCOPES:
        raise Malformed(f"{place}: at most {MAX_API_SCOPES} entries").on_screen(
            "entries_api", max_api_scopes=MAX_API_SCOPES
        )
    return {name: _scope(name, details, f"{place}.{printable(name)}") for name, details in members.items()}


def _scope(name: str, details: object, place: str) -> dict[str, str]:
    if len(name) > MAX_SCOPE_LENGTH or API_SCOPE.fullmatch(name) is None:
        raise Malformed(
            f"{place}: a scope is at most {MAX_SCOPE_LENGTH} of a-z 0-9 _ - in parts joined by . or :"
        ).on_screen("scope_name", max_scope_length=MAX_SCOPE_LENGTH)
    if name in RESERVED_SCOPES or name.startswith(RESERVED_SCOPE_PREFIX):
        raise Malformed(f"{place}: this scope has a meaning of its own").on_screen("scope_reserved")
    members: Mapping[str, object] = read_members(details, place, ("title", "description"))
    checked = {"title": read_line(members.get("title"), f"{place}.title", MAX_SCOPE_TITLE, shortest=1)}
    if members.get("description") is not None:
        checked["description"] = read_lines(members["description"], f"{place}.description", MAX_SCOPE_DESCRIPTION)
    return checked


def _access(value: object, place: str) -> str:
    if value not in ACCESS:
        raise Malformed(f"{place}: must be own, listed or any")
    return str(value)


def _act(value: object, place: str) -> str:
    if value not in ACT:
        raise Malformed(f"{place}: must be accepted or refused")
    return str(value)


def _clients(document: object, place: str, access: object) -> list[str]:
    entries = read_list(document, place, MAX_API_CLIENTS)
    for index, entry in enumerate(entries):
        if not isinstance(entry, str) or CLIENT.fullmatch(entry) is None:
            raise Malformed(f"{place}[{index}]: must be a client ID or the user ID of a service account").on_screen(
                "client_or_account"
            )
    listed = [str(entry) for entry in entries]
    refuse_repeated(listed, place)
    if listed and access != "listed":
        raise Malformed(f"{place}: only with access listed").on_screen("only_listed")
    return listed


def _token_seconds(value: object, place: str) -> int:
    seconds = read_number(value, place, MAX_TOKEN_SECONDS)
    if seconds < MIN_TOKEN_SECONDS:
        raise Malformed(f"{place}: must be an integer from {MIN_TOKEN_SECONDS} to {MAX_TOKEN_SECONDS}").on_screen(
            "token_seconds", min_token_seconds=MIN_TOKEN_SECONDS, max_token_seconds=MAX_TOKEN_SECONDS
        )
    return seconds
