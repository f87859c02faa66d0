"""How large a request may be (S-19, checklist HT-02, HT-07)."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, Protocol

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Lifespan, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from gatehouse.kernel.errors import TooMany, Unavailable
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.errors import Dialect, ErrorRenderer
from gatehouse.web.http.parse import JSON_ONLY, BodyKind
from gatehouse.web.http.responses import Header, RefuseRequest, refuse_in_plain_text, with_headers

DEFAULT_BODY_LIMIT: Final = 256 * 1024
CONTENT_LENGTH_PATTERN: Final = re.compile(rb"[0-9]{1,19}")
CONTENT_LENGTH: Final = b"content-length"
CONTENT_ENCODING: Final = b"content-encoding"
BODY_HEADERS: Final = frozenset({CONTENT_LENGTH, CONTENT_ENCODING})
CONNECTION_CLOSE: Final = (b"connection", b"close")


class BodyLimitMiddleware:
    """Refuses by the announced length before reading, and by counting while reading."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        default: int = DEFAULT_BODY_LIMIT,
        limits_by_path: Mapping[str, int] = MappingProxyType({}),  # bytes by exact path
        refuse: RefuseRequest = refuse_in_plain_text,
    ) -> None:
        self._app = app
        self._default = default
        self._limits_by_path = dict(limits_by_path)
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limits_by_path.get(scope["path"], self._default)
        headers = [header for header in scope["headers"] if header[0] in BODY_HEADERS]
        if has_encoded_body(headers):
            await self._refuse_and_close(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, scope, receive, send)
        elif announced_length(headers) > limit:
            await self._refuse_and_close(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, scope, receive, send)
        else:
            counted = CountedBody(limit, self._refuse_and_close, scope, receive, send)
            await self._app(scope, counted.receive, counted.send)

    async def _refuse_and_close(self, status: int, scope: Scope, receive: Receive, send: Send) -> None:
        """The body is left unread, so the connection cannot serve another request."""
        await self._refuse(status, scope, receive, with_headers(send, lambda _: [CONNECTION_CLOSE]))


class CountedBody:
    """One request's body. Past the limit the application hears that its client left, and is not heard itself.

    That it must be able to bear anyhow; an exception of ours it might take for a failure of its own.
    """

    def __init__(self, limit: int, refuse: RefuseRequest, scope: Scope, receive: Receive, send: Send) -> None:
        self._left = limit
        self._refuse = refuse
        self._scope = scope
        self._receive = receive
        self._send = send
        self._answer_started = False
        self._refused = False

    async def receive(self) -> Message:
        if self._left < 0:
            return {"type": "http.disconnect"}
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left >= 0:
            return message
        if not self._answer_started:
            self._refused = True
            await self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._scope, self._receive, self._send)
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if not self._refused:
            self._answer_started = True
            await self._send(message)


def has_encoded_body(headers: Iterable[Header]) -> bool:
    """A compressed body is never unpacked: a few kilobytes can become gigabytes."""
    return any(name == CONTENT_ENCODING and value.lower() != b"identity" for name, value in headers)


def announced_length(headers: Iterable[Header]) -> int:
    """What the client says it will send; nothing odd comes this far (request_head.py)."""
    given = (value for name, value in headers if name == CONTENT_LENGTH and CONTENT_LENGTH_PATTERN.fullmatch(value))
    return int(next(given, b"0"))


# CORS of the endpoints that clients call from a browser: for registered origins, never with credentials (R3).
#
# Around the table, so that errors carry the header too: a page that may not read why it was refused learns nothing.


CLIENT_PREFLIGHT_MAX_AGE: Final = "600"  # seconds; an origin may be taken away
CORS_ALLOWED_HEADERS: Final = "authorization, content-type"

IsRegisteredOrigin = Callable[[str], Awaitable[bool]]


class ClientCorsMiddleware:
    """`paths` are those the rule is for, each with its methods."""

    def __init__(self, app: ASGIApp, *, paths: Mapping[str, str], is_registered: IsRegisteredOrigin) -> None:
        self._app = app
        self._paths = paths
        self._is_registered = is_registered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        methods = self._paths.get(scope["path"]) if scope["type"] == "http" else None
        if methods is None:
            await self._app(scope, receive, send)
            return
        origin = await self._registered_origin(scope)
        if origin and scope["method"] == "OPTIONS":
            await preflight_response(origin, methods)(scope, receive, send)
        else:
            await self._app(scope, receive, send_with_cors(origin, send) if origin else send)

    async def _registered_origin(self, scope: Scope) -> str:
        """The caller's, if a client registered it; whether the database is there is for the endpoint to say."""
        given = Headers(scope=scope).getlist("origin")
        if len(given) != 1:
            return ""
        try:
            return given[0] if await self._is_registered(given[0]) else ""
        except Unavailable:
            return ""


def preflight_response(origin: str, methods: str) -> Response:
    return Response(
        None,
        204,
        {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": CORS_ALLOWED_HEADERS,
            "Access-Control-Max-Age": CLIENT_PREFLIGHT_MAX_AGE,
            "Vary": "Origin",
        },
    )


def send_with_cors(origin: str, send: Send) -> Send:
    async def send_shared(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers.add_vary_header("Origin")
        await send(message)

    return send_shared


# What an endpoint is, and how a table of them becomes an application.
#
# One record says everything about a path: who answers, in which dialect, under which limits, and what the
# OpenAPI document tells about it. Paths are exact: no redirect adds or takes a slash (checklist HT-10).


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
    """A JSON document that is the same for everyone, open to every origin (web/server/static_documents.py)."""

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
