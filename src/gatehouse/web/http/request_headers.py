"""The headers of a request, found by name."""

from collections.abc import Mapping
from typing import Final

from starlette.types import Scope

HEADERS_BY_NAME_KEY: Final = "gatehouse.headers_by_name"  # the scope key


def headers_by_name(scope: Scope) -> Mapping[bytes, bytes]:
    """Return the headers by their names in lower case; of a repeated one the last value."""
    found: Mapping[bytes, bytes] | None = scope.get(HEADERS_BY_NAME_KEY)
    if found is None:
        found = scope[HEADERS_BY_NAME_KEY] = dict(scope["headers"])
    return found


def header_values(scope: Scope, name: bytes) -> list[str]:
    """Return the values of a header, one per line; `name` is in lower case."""
    by_name, headers = headers_by_name(scope), scope["headers"]
    if name not in by_name:
        return []
    if len(by_name) == len(headers):
        return [by_name[name].decode("latin-1")]
    return [value.decode("latin-1") for given, value in headers if given == name]


def bearer_token(header: str) -> str:
    """Return the token of `Bearer <token>`; empty for any other header."""
    scheme, _, rest = header.partition(" ")
    token = rest.lstrip(" ")
    return token if scheme.lower() == "bearer" and token.split() == [token] and "," not in token else ""
