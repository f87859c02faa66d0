"""What an endpoint is, and how a table of endpoints becomes an ASGI application.

One record has everything about a path: its handler, its error dialect, its limits, and what the OpenAPI document says
about it. Paths are exact: no redirect adds or removes a slash (checklist HT-10).
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, StrEnum
from functools import cache
from types import UnionType
from typing import Final, get_args

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Router
from starlette.types import Lifespan, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from gatehouse.images.model import MAX_UPLOAD_BYTES
from gatehouse.kernel.errors import TooMany, Unavailable
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.http.client_address import caller_address_of
from gatehouse.web.http.errors import Dialect, ErrorRenderer
from gatehouse.web.http.parse import JSON_ONLY, BodyKind
from gatehouse.web.http.request_headers import header_values, headers_by_name

DEFAULT_BODY_LIMIT: Final = 256 * 1024  # bytes (S-19)
SCHEMA_BODY_LIMIT: Final = 4 * 1024 * 1024
UPLOAD_BODY_LIMIT: Final = MAX_UPLOAD_BYTES + 65_536  # an image and the form around it
BODY_HEADERS: Final = frozenset({b"content-length", b"transfer-encoding", b"content-encoding"})
PARAMETER_PATTERN: Final = re.compile(r"\{(?P<name>\w+)(?::(?P<kind>int|path))?\}")
NUMBER_PATTERN: Final = re.compile(r"[0-9]{1,18}")
MAX_LENGTH_DIGITS: Final = 19  # of a Content-Length
PUBLIC_PREFLIGHT_MAX_AGE: Final = "86400"  # seconds a browser may remember the response to a preflight
CLIENT_PREFLIGHT_MAX_AGE: Final = "600"  # shorter: an origin may be removed
CLIENT_CORS_HEADERS: Final = "authorization, content-type"
ALLOWED_ORIGIN_KEY: Final = "allowed_origin"
ERROR_HEADERS_KEY: Final = "error_headers"

Handler = Callable[[Request], Awaitable[Response]]
PathParameters = dict[str, str | int]
IsRegisteredOrigin = Callable[[str], Awaitable[bool]]


class RateClass(StrEnum):
    """Endpoints that share one allowance per caller."""

    PUBLIC = "public"
    LOGIN = "login"
    TOKEN = "token"  # noqa: S105 - a name
    POLL = "poll"
    ADMIN = "admin"
    KEYS = "keys"
    SITE = "site"


class RequiredAuth(Enum):
    """The credentials a caller needs; the handler checks them and the OpenAPI document lists them."""

    NONE = "none"
    SESSION = "session"
    CLIENT = "client"
    ACCESS_TOKEN = "access_token"  # noqa: S105 - a name
    USER_JWT = "user_jwt"
    USER_JWT_AND_FACTOR = "user_jwt_and_factor"
    ACCESS_KEY = "access_key"
    USER_OR_APPLICATION = "user_or_application"
    OPERATIONS = "operations"


class Cors(Enum):
    NONE = "none"
    ANYONE = "anyone"  # any origin, never with credentials: key sets and discovery (checklist HT-12)
    CLIENTS = "clients"  # the origins that clients registered, never with credentials (R3)


class HtmlPage:
    """A response that is a page for a person."""


class HtmlPageOrFailure:
    """A page for a person, or a failure in JSON if the request itself was wrong."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table. `name` is the label in logs and metrics, and the operation's id."""

    name: str
    path: str
    methods: tuple[str, ...]
    handler: Handler
    dialect: Dialect
    rate_class: RateClass
    summary: str = ""
    section: str = ""  # "interface §4.4"
    request: type[msgspec.Struct] | UnionType | None = None  # a union: one type for each action
    accepts: frozenset[BodyKind] = JSON_ONLY
    answers: Mapping[int, type | None] = msgspec.field(default_factory=dict)
    also_request: type[msgspec.Struct] | None = None  # another body that it accepts
    also_answer: type[msgspec.Struct] | None = None  # its 200 response to that body
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)  # that it reads, with their descriptions
    idempotent: bool = False  # takes the header Idempotency-Key
    also_as: str = ""  # another media type of its 200 response
    event_stream: str = ""  # an example, if its 200 response is a stream of server-sent events
    auth: RequiredAuth = RequiredAuth.NONE
    body_limit: int = DEFAULT_BODY_LIMIT  # bytes
    cors: Cors = Cors.NONE
    error_headers: Mapping[str, str] = msgspec.field(default_factory=dict)  # of every error
    hidden: bool = False  # pages and similar, not in the OpenAPI document

    def __post_init__(self) -> None:
        """Check that a permission endpoint's type forbids unknown fields (R6)."""
        if self.dialect is not Dialect.PERMISSIONS:
            return
        kinds = get_args(self.request) or (self.request,)
        if not all(kind is None or kind.__struct_config__.forbid_unknown_fields for kind in kinds):
            raise TypeError(f"{self.name}: {self.request} must forbid unknown fields")


async def no_registered_origin(_origin: str) -> bool:
    """Accept no origin; for applications without clients."""
    return False


def build_application(
    endpoints: Sequence[Endpoint],
    *,
    limiter: RateLimiter,
    errors: ErrorRenderer,
    is_registered_origin: IsRegisteredOrigin = no_registered_origin,
    more_routes: Sequence[BaseRoute] = (),
    lifespan: Lifespan[None] | None = None,
) -> "PathDispatcher":
    """Build an ASGI application from the table, in which every exception becomes a response.

    Starlette's own application class is not used: it responds to unexpected errors outside of all middleware, without
    security headers and request id.
    """
    applications = path_applications(endpoints, limiter=limiter, is_registered_origin=is_registered_origin)
    router = Router(more_routes, redirect_slashes=False, default=not_found, lifespan=lifespan)
    return PathDispatcher(applications, router, errors)


def path_applications(
    endpoints: Iterable[Endpoint],
    *,
    limiter: RateLimiter,
    is_registered_origin: IsRegisteredOrigin = no_registered_origin,
) -> dict[str, "PathApplication"]:
    """Build one application per path; endpoints that share a path differ in their methods."""
    by_path: dict[str, list[Endpoint]] = {}
    names: set[str] = set()
    for endpoint in endpoints:
        if endpoint.name in names:
            raise ValueError(f"two endpoints are named {endpoint.name}")
        names.add(endpoint.name)
        by_path.setdefault(endpoint.path, []).append(endpoint)
    return {path: PathApplication(sharing, limiter, is_registered_origin) for path, sharing in by_path.items()}


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await WebSocketClose()(scope, receive, send)
        return
    check_announced_body(scope, DEFAULT_BODY_LIMIT)
    raise HTTPException(404)


class Parameter(Enum):
    """What may be a part of a path, or its rest, in the order in which they are tried."""

    NUMBER = "int"
    TEXT = ""
    REST = "path"


FoundApplication = tuple["PathApplication", PathParameters]


class PathTree:
    """Applications by patterns such as `/people/{user_id}/bans`, found part by part, however many there are.

    Where patterns differ, a word comes before `{number:int}`, that before `{text}`, that before `{rest:path}`.
    """

    def __init__(self) -> None:
        self.below: dict[str | Parameter, PathTree] = {}
        self.app: PathApplication | None = None
        self.names: tuple[str, ...] = ()

    def add(self, pattern: str, app: "PathApplication") -> None:
        tree = self
        parts, names = parse_pattern(pattern)
        for part in parts:
            below = tree.below.get(part)
            if below is None:
                below = tree.below[part] = PathTree()
            tree = below
        tree.app, tree.names = app, names

    def find(self, path: str) -> "FoundApplication | None":
        """Return the application of the path and its parameters."""
        return self.find_parts(path.split("/"), ())

    def find_parts(self, parts: Sequence[str], values: Sequence[str | int]) -> "FoundApplication | None":
        if not parts:
            return None if self.app is None else (self.app, dict(zip(self.names, values, strict=True)))
        for key, taken, rest in matching_parts(parts):
            below = self.below.get(key)
            found = None if below is None else below.find_parts(rest, (*values, *taken))
            if found is not None:
                return found
        return None


@cache
def parse_pattern(pattern: str) -> tuple[tuple[str | Parameter, ...], tuple[str, ...]]:
    """Return the parts of a pattern and the names of its parameters."""
    parts: list[str | Parameter] = []
    names = []
    for part in pattern.split("/"):
        parameter = PARAMETER_PATTERN.fullmatch(part)
        if parameter is not None:
            names.append(parameter["name"])
        elif "{" in part:
            raise ValueError(f"{pattern}: a parameter is a whole part of a path")
        parts.append(part if parameter is None else Parameter(parameter["kind"] or ""))
    return tuple(parts), tuple(names)


def matching_parts(
    parts: Sequence[str],
) -> Iterator[tuple[str | Parameter, Sequence[str | int], Sequence[str]]]:
    """Yield what the first parts may be: the key in the tree, the value of a parameter, the parts that are left."""
    first, rest = parts[0], parts[1:]
    yield first, (), rest
    if NUMBER_PATTERN.fullmatch(first):
        yield Parameter.NUMBER, (int(first),), rest
    if first:
        yield Parameter.TEXT, (first,), rest
    yield Parameter.REST, ("/".join(parts),), ()


class PathDispatcher:
    """Finds exact paths by one lookup, patterns in a tree, and leaves WebSockets and the lifespan to the router.

    Every exception becomes a response, or ends the connection once the response has begun.
    """

    def __init__(self, applications: "Mapping[str, PathApplication]", router: Router, errors: ErrorRenderer) -> None:
        self._exact = {path: app for path, app in applications.items() if "{" not in path}
        self._patterns = PathTree()
        for path, app in applications.items():
            if path not in self._exact:
                self._patterns.add(path, app)
        self._router = router
        self._errors = errors

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Return the response if it is whole; None for one that was sent, because it does more than send a body."""
        if scope["type"] == "lifespan":
            await self._router(scope, receive, send)
            return None
        app = self._exact.get(scope["path"]) or self._matching_application(scope)
        try:
            if app is not None and scope["type"] == "http":
                return await app.respond(scope, receive, send)
            await self._router(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - ErrorRenderer tells the foreseen from the others
            response = await self._errors.response_for(scope, error)
            origin = scope["state"].get(ALLOWED_ORIGIN_KEY)
            if origin:
                allow_origin(response, origin)
            response.headers.update(scope["state"].get(ERROR_HEADERS_KEY, {}))
            return await send_unless_whole(response, scope, receive, send)
        return None

    def _matching_application(self, scope: Scope) -> "PathApplication | None":
        """Return the application whose pattern the path matches, with its parameters in the scope."""
        found = self._patterns.find(scope["path"]) if scope["type"] == "http" else None
        if found is None:
            return None
        app, scope["path_params"] = found
        return app


async def send_unless_whole(response: Response, scope: Scope, receive: Receive, send: Send) -> Response | None:
    """Return a response that only sends its body; send any other."""
    if is_whole(response):
        return response
    await response(scope, receive, send)
    return None


def is_whole(response: Response) -> bool:
    """Whether a response does nothing but send its body."""
    return type(response).__call__ is Response.__call__ and response.background is None


class PathApplication:
    """All endpoints of one path: body limit, CORS, rate limit, handler."""

    def __init__(
        self, endpoints: Sequence[Endpoint], limiter: RateLimiter, is_registered_origin: IsRegisteredOrigin
    ) -> None:
        self._limiter = limiter
        self._is_registered_origin = is_registered_origin
        self._first = endpoints[0]
        self._by_method = endpoints_by_method(endpoints)
        self._allow = ", ".join(sorted(self._by_method))
        self._allows_any_origin = any(endpoint.cors is Cors.ANYONE for endpoint in endpoints)
        self._client_methods = ", ".join(
            sorted(method for endpoint in endpoints if endpoint.cors is Cors.CLIENTS for method in endpoint.methods)
        )

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Return the response if it is whole; None for one that was sent."""
        method, state = scope["method"], scope["state"]
        endpoint = self._by_method.get(method, self._first)
        state["endpoint"], state["dialect"] = endpoint.name, endpoint.dialect
        if endpoint.error_headers:
            state[ERROR_HEADERS_KEY] = endpoint.error_headers
        has_body = check_announced_body(scope, endpoint.body_limit)
        origin = ""
        if self._client_methods and b"origin" in headers_by_name(scope):
            origin = state[ALLOWED_ORIGIN_KEY] = await self._registered_origin(scope)  # errors too, to be readable
        if not scope["path"].isprintable():
            raise HTTPException(404)  # a parameter accepts any text
        if method not in self._by_method:
            response = self._preflight_response(method, origin)
        else:
            wait = self._limiter.admit(endpoint.rate_class, caller_address_of(scope).source)
            if wait:
                raise TooMany(wait, f"{endpoint.rate_class} requests from one source")
            if has_body:
                body = LimitedBody(receive, endpoint.body_limit)
                receive = body.receive
                response = await body.answer_within(endpoint.handler, Request(scope, receive, send))
            else:
                response = await endpoint.handler(Request(scope, receive, send))
        if self._allows_any_origin:
            response.headers["Access-Control-Allow-Origin"] = "*"
        if origin:
            allow_origin(response, origin)
        return response if is_whole(response) else await send_unless_whole(response, scope, receive, send)

    async def _registered_origin(self, scope: Scope) -> str:
        """Return the caller's origin if a client registered it; the handler reports an unavailable database."""
        given = header_values(scope, b"origin")
        if len(given) != 1:
            return ""
        try:
            return given[0] if await self._is_registered_origin(given[0]) else ""
        except Unavailable:
            return ""

    def _preflight_response(self, method: str, origin: str) -> Response:
        """The response to a CORS preflight; any other method is not allowed."""
        if method == "OPTIONS" and origin:
            headers = {
                "Access-Control-Allow-Methods": self._client_methods,
                "Access-Control-Allow-Headers": CLIENT_CORS_HEADERS,
                "Access-Control-Max-Age": CLIENT_PREFLIGHT_MAX_AGE,
            }
        elif method == "OPTIONS" and self._allows_any_origin:
            headers = {
                "Access-Control-Allow-Methods": self._allow,
                "Access-Control-Max-Age": PUBLIC_PREFLIGHT_MAX_AGE,
            }
        else:
            raise HTTPException(405, headers={"Allow": self._allow})
        return Response(None, 204, headers)


def endpoints_by_method(endpoints: Iterable[Endpoint]) -> dict[str, Endpoint]:
    """Return the endpoint of each method; HEAD belongs to the endpoint of GET, unless another endpoint has it."""
    found: dict[str, Endpoint] = {}
    for endpoint in endpoints:
        for method in endpoint.methods:
            if method in found:
                raise ValueError(f"{endpoint.name} and {found[method].name} both answer {method} {endpoint.path}")
            found[method] = endpoint
    if "GET" in found:
        found.setdefault("HEAD", found["GET"])
    return found


def allow_origin(response: Response, origin: str) -> None:
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers.add_vary_header("Origin")


# How large a request may be (S-19, checklist HT-02, HT-07): its announced length is checked before the body is read,
# its real length while it is read.


def check_announced_body(scope: Scope, limit: int) -> bool:
    """Refuse a body by its headers. Returns whether there is one.

    A compressed body is never decompressed: a few kilobytes can become gigabytes.
    """
    has_body = False
    if BODY_HEADERS.isdisjoint(headers_by_name(scope)):
        return has_body
    for name, value in scope["headers"]:
        if name == b"content-length":
            has_body = True
            # Others were refused before (request_head.py).
            if len(value) <= MAX_LENGTH_DIGITS and value.isdigit() and int(value) > limit:
                raise unread_body(413)
        elif name == b"transfer-encoding":
            has_body = True
        elif name == b"content-encoding" and value.lower() != b"identity":
            raise unread_body(415)
    return has_body


def unread_body(status: int) -> HTTPException:
    """Leave the body unread; the connection cannot serve another request."""
    return HTTPException(status, headers={"Connection": "close"})


class LimitedBody:
    """Counts what a handler reads. Beyond the limit the handler sees a disconnect, and its response is not sent.

    Every handler can deal with a disconnect, but might treat an exception as its own failure.
    """

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._left = limit
        self.is_exceeded = False

    async def answer_within(self, handler: Handler, request: Request) -> Response:
        """Return the response of the handler. Raises HTTPException if the body exceeds the limit."""
        try:
            response = await handler(request)
        except Exception:
            if self.is_exceeded:
                raise unread_body(413) from None
            raise
        if self.is_exceeded:
            raise unread_body(413)
        return response

    async def receive(self) -> Message:
        if not self.is_exceeded:
            message = await self._receive()
            self._left -= len(message.get("body", b""))
            self.is_exceeded = self._left < 0
            if not self.is_exceeded:
                return message
        return {"type": "http.disconnect"}
