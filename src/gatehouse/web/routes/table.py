"""What an endpoint is, and how a table of them becomes an application.

One record says everything about a path: who answers, in which dialect, under which limits, and what the
OpenAPI document tells about it. Paths are exact: no redirect adds or takes a slash (checklist HT-10).
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from gatehouse.kernel.errors import TooMany
from gatehouse.web.dialects import Dialect
from gatehouse.web.errors import ErrorRenderer
from gatehouse.web.middleware.body_limit import DEFAULT_BODY_LIMIT
from gatehouse.web.middleware.client_address import caller_address_of
from gatehouse.web.parse import JSON_ONLY, BodyKind

SCHEMA_BODY_LIMIT: Final = 4 * 1024 * 1024  # bytes (S-19)
PUBLIC_PREFLIGHT_MAX_AGE: Final = "86400"  # seconds a browser may remember the answer to a preflight
FORBIDDEN_IN_HEADERS: Final = re.compile(rb"[\r\n\0]")

Handler = Callable[[Request], Awaitable[Response]]


class RateClass(Enum):
    """Endpoints that share one allowance per caller."""

    PUBLIC = "public"
    LOGIN = "login"
    TOKEN = "token"  # noqa: S105 - a name
    POLL = "poll"
    ADMIN = "admin"
    KEYS = "keys"


class RequiredAuth(Enum):
    """What a caller must bring; checked by the handler, told by the OpenAPI document."""

    NONE = "none"
    SESSION = "session"
    CLIENT = "client"
    ACCESS_TOKEN = "access_token"  # noqa: S105 - a name
    USER_JWT = "user_jwt"
    USER_JWT_AND_FACTOR = "user_jwt_and_factor"
    ACCESS_KEY = "access_key"
    OPERATIONS = "operations"


class Cors(Enum):
    NONE = "none"
    ANYONE = "anyone"  # any origin, never with credentials: key sets and discovery (checklist HT-12)
    CLIENTS = "clients"  # the origins that clients registered (middleware/client_origins.py)


class HtmlPage:
    """An answer that is a page for a person."""


class EndpointRateLimiter(Protocol):
    def admit(self, rate_class: RateClass, source: str) -> int:
        """Count one request; return 0 to let it pass, else the seconds after which to come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticDocument:
    """A JSON document that is the same for everyone, open to every origin (web/static_documents.py)."""

    # The very same object for as long as it says the same; None when the endpoint has to be asked.
    body: Callable[[], bytes | None]
    cache_control: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One row of the table. `name` is the label in logs and metrics, and the operation's id."""

    name: str
    path: str
    methods: tuple[str, ...]
    handler: Handler
    dialect: Dialect
    rate_class: RateClass
    summary: str = ""
    section: str = ""  # "interface §4.4"
    request: type[msgspec.Struct] | None = None
    accepts: frozenset[BodyKind] = JSON_ONLY
    answers: Mapping[int, type | None] = field(default_factory=dict)
    also_as: str = ""  # another media type in which it answers 200
    auth: RequiredAuth = RequiredAuth.NONE
    body_limit: int = DEFAULT_BODY_LIMIT  # bytes
    cors: Cors = Cors.NONE
    static: StaticDocument | None = None  # what the handler answers to a GET without conditions
    hidden: bool = False  # pages and the like, not told by the OpenAPI document

    def __post_init__(self) -> None:
        """Permission endpoints refuse unknown fields by name (R6): a type that would not is a mistake."""
        strict = self.request is None or self.request.__struct_config__.forbid_unknown_fields
        if self.dialect is Dialect.PERMISSIONS and not strict:
            raise TypeError(f"{self.name}: {self.request} must forbid unknown fields")


def build_application(
    endpoints: Sequence[Endpoint],
    *,
    limiter: EndpointRateLimiter,
    errors: ErrorRenderer,
    more_routes: Sequence[BaseRoute] = (),
    lifespan: Lifespan[None] | None = None,
) -> ASGIApp:
    """The table as an ASGI application in which every exception becomes an answer.

    Not Starlette's own application class: that one answers unforeseen errors outside of all middleware, so
    without security headers and request id.
    """
    routes = build_routes(endpoints, limiter=limiter)
    exact = {route.path: route.app for route in routes if not route.param_convertors}
    router = Router([*routes, *more_routes], redirect_slashes=False, default=not_found, lifespan=lifespan)
    return PathDispatcher(exact, router, errors)


def build_routes(endpoints: Iterable[Endpoint], *, limiter: EndpointRateLimiter) -> list[Route]:
    """One route per path, in the order of the table; endpoints that share a path differ in their methods."""
    by_path: dict[str, list[Endpoint]] = {}
    names: set[str] = set()
    for endpoint in endpoints:
        if endpoint.name in names:
            raise ValueError(f"two endpoints are named {endpoint.name}")
        names.add(endpoint.name)
        by_path.setdefault(endpoint.path, []).append(endpoint)
    return [Route(path, PathApplication(sharing, limiter), name=path) for path, sharing in by_path.items()]


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await WebSocketClose()(scope, receive, send)
        return
    raise HTTPException(404)


class PathDispatcher:
    """Finds exact paths by one look-up and leaves patterns, WebSockets and the lifespan to the router."""

    def __init__(self, exact: Mapping[str, ASGIApp], router: Router, errors: ErrorRenderer) -> None:
        self._exact = exact
        self._router = router
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Every exception becomes an answer; one after the answer had begun ends the connection."""
        if scope["type"] == "lifespan":
            await self._router(scope, receive, send)
            return
        found = self._exact.get(scope["path"]) if scope["type"] == "http" else None
        try:
            await (found or self._router)(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - ErrorAnswers tells the foreseen from the others
            answer = await self._errors.response_for(scope, error)
            await answer(scope, receive, send)


class PathApplication:
    """All endpoints of one path."""

    def __init__(self, endpoints: Sequence[Endpoint], limiter: EndpointRateLimiter) -> None:
        self._limiter = limiter
        self._first = endpoints[0]
        self._by_method = endpoints_by_method(endpoints)
        self._allows_any_origin = any(endpoint.cors is Cors.ANYONE for endpoint in endpoints)
        self._allow = ", ".join(sorted(self._by_method))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._by_method.get(scope["method"], self._first)
        state = scope["state"]
        state["endpoint"], state["dialect"] = endpoint.name, endpoint.dialect
        response = await self._respond(Request(scope, receive, send), endpoint)
        if self._allows_any_origin:
            response.headers["Access-Control-Allow-Origin"] = "*"
        refuse_split_headers(response)
        await response(scope, receive, send)

    async def _respond(self, request: Request, endpoint: Endpoint) -> Response:
        if not request.scope["path"].isprintable():
            raise HTTPException(404)  # a pattern's `$` lets a trailing newline pass
        if request.method not in self._by_method:
            return self._preflight_or_refuse(request)
        wait = self._limiter.admit(endpoint.rate_class, caller_address_of(request.scope).source)
        if wait:
            raise TooMany(wait, f"{endpoint.rate_class.value} requests from one source")
        return await endpoint.handler(request)

    def _preflight_or_refuse(self, request: Request) -> Response:
        if not (self._allows_any_origin and request.method == "OPTIONS"):
            raise HTTPException(405, headers={"Allow": self._allow})
        return Response(
            None,
            204,
            {"Access-Control-Allow-Methods": self._allow, "Access-Control-Max-Age": PUBLIC_PREFLIGHT_MAX_AGE},
        )


def endpoints_by_method(endpoints: Iterable[Endpoint]) -> dict[str, Endpoint]:
    """Who answers which method; HEAD is answered by whoever answers GET, unless one asks for it itself."""
    found: dict[str, Endpoint] = {}
    for endpoint in endpoints:
        for method in endpoint.methods:
            if method in found:
                raise ValueError(f"{endpoint.name} and {found[method].name} both answer {method} {endpoint.path}")
            found[method] = endpoint
    if "GET" in found:
        found.setdefault("HEAD", found["GET"])
    return found


def body_limits(endpoints: Iterable[Endpoint]) -> dict[str, int]:
    """What the body-limit middleware is told: the paths whose limit is not the usual one."""
    return {endpoint.path: endpoint.body_limit for endpoint in endpoints if endpoint.body_limit != DEFAULT_BODY_LIMIT}


def client_cors_paths(endpoints: Iterable[Endpoint]) -> dict[str, str]:
    """What the middleware of client origins is told: its paths and their methods."""
    shared = [endpoint for endpoint in endpoints if endpoint.cors is Cors.CLIENTS]
    return {
        path: ", ".join(sorted(method for one in shared if one.path == path for method in one.methods))
        for path in dict.fromkeys(endpoint.path for endpoint in shared)
    }


def refuse_split_headers(response: Response) -> None:
    """No value of ours ever ends a header line (checklist HT-13); if one would, that is a bug and a 500."""
    for name, value in response.raw_headers:
        if FORBIDDEN_IN_HEADERS.search(value):
            raise ValueError(f"line break in the response header {name.decode('latin-1')}")
