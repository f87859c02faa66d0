"""The five ways in which an endpoint tells its caller that something went wrong."""

from enum import Enum
from typing import Final, Literal

import msgspec
from starlette.types import Scope


class Dialect(Enum):
    PAGE = "page"  # HTML, for a person
    OAUTH = "oauth"  # RFC 6749 §5.2, interface §7
    PERMISSIONS = "permissions"  # interface §4.1, R6
    GAME = "game"  # interface §4.3, R4
    PLAIN = "plain"  # ours


# For what happens before a route is known. The longest prefix decides, at a slash only.
DIALECT_PREFIXES: Final[tuple[tuple[str, Dialect], ...]] = (
    ("/proxy/api/gameSession", Dialect.GAME),
    ("/api/permissions", Dialect.PERMISSIONS),
    ("/proxy/oauth", Dialect.OAUTH),
    ("/openapi.json", Dialect.PLAIN),
    ("/.well-known", Dialect.PLAIN),
    ("/healthz", Dialect.PLAIN),
    ("/metrics", Dialect.PLAIN),
    ("/readyz", Dialect.PLAIN),
    ("/proxy", Dialect.PLAIN),
    ("/api", Dialect.PLAIN),
)


class OAuthFailure(msgspec.Struct, frozen=True, kw_only=True):
    error: str
    error_description: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Error envelope of the permission and game session endpoints."""

    error: str
    status: Literal["ERROR"] = "ERROR"


class PlainFailure(msgspec.Struct, frozen=True, kw_only=True):
    error: str
    request_id: str
    status: Literal["ERROR"] = "ERROR"


def dialect_for_path(path: str) -> Dialect:
    for prefix, dialect in DIALECT_PREFIXES:
        if path == prefix or path.startswith(f"{prefix}/"):
            return dialect
    return Dialect.PAGE


def dialect_of(scope: Scope) -> Dialect:
    """The dialect of the endpoint once there is one, and until then that of the path."""
    known = scope.get("state", {}).get("dialect")
    return known if isinstance(known, Dialect) else dialect_for_path(scope["path"])


def request_id_of(scope: Scope) -> str:
    """The id the request-id middleware gave; empty where a request was refused even before that."""
    return str(scope.get("state", {}).get("request_id", ""))
