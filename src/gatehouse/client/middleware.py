"""ASGI middleware: adds the user to every request and answers those that are not allowed.

It is plain ASGI without Starlette, so it works with every ASGI application.
"""

import functools
import inspect
import logging
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeAlias, TypeVar

import msgspec

from gatehouse.client.errors import ClientError, Denied, Unauthenticated
from gatehouse.client.gatehouse import Gatehouse
from gatehouse.client.permissions import Resource
from gatehouse.client.verification import User

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
AddressOf: TypeAlias = Callable[[Scope], str | None]

log: Final = logging.getLogger("gatehouse.client")
SCOPE_KEY: Final = "gatehouse.client"  # in the scope: whom `require` asks
BEARER: Final = re.compile(rb"bearer +([^\s,]+)", re.IGNORECASE)
POLICY_VIOLATION: Final = 1008  # RFC 6455 §7.4.1; before the handshake is accepted the server makes it a 403
UNAVAILABLE: Final = 503
RETRY_AFTER: Final = b"2"  # seconds


def no_address(_scope: Scope) -> None:
    """Return no address; a JWT that is bound to an address is then refused."""


class GatehouseMiddleware:
    """`anonymous`: let requests without a JWT in, with None for a user. `open_paths`: these need none either.

    `address`: how the client's address is found; `peer_address` where the server knows it (see there). `offline`:
    accept a JWT until its end without checking whether it was revoked; `require` still checks. Add it inside the
    framework (`app.add_middleware`), where it sees the errors that `require` raises.
    """

    def __init__(
        self,
        app: App,
        *,
        gatehouse: Gatehouse,
        anonymous: bool = False,
        open_paths: Iterable[str] = (),
        address: AddressOf = no_address,
        offline: bool = False,
    ) -> None:
        self._app = app
        self._gatehouse = gatehouse
        self._anonymous = anonymous
        self._open = frozenset(open_paths)
        self._address = address
        self._offline = offline

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        exchange = AsgiExchange(scope, receive, send)
        try:
            user = await self._user(scope)
            state = {**scope.get("state", {}), "user": user}
            known = {**scope, "user": user, "state": state, SCOPE_KEY: self._gatehouse}
            await self._app(known, exchange.receive, exchange.send)
        except ClientError as error:
            if not await exchange.refuse(error):
                raise

    async def _user(self, scope: Scope) -> User | None:
        jwt = bearer_token(scope)
        if jwt is None:
            if self._anonymous or scope["path"] in self._open:
                return None
            raise Unauthenticated("no user JWT")
        user = await self._gatehouse.user(jwt, factor=header_text(scope, b"factor"), address=self._address(scope))
        if not self._offline:
            await self._gatehouse.permissions(user)
        return user


class AsgiExchange:
    """Tracks whether the application has begun its response; until then a refusal can still be sent."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._is_websocket = scope["type"] == "websocket"
        self._receive = receive
        self._send = send
        self._has_received = False
        self._has_begun = False

    async def receive(self) -> Message:
        self._has_received = True
        return await self._receive()

    async def send(self, message: Message) -> None:
        # An accepted WebSocket can still be closed; a response that has begun cannot be replaced.
        self._has_begun = self._has_begun or message["type"] not in ("websocket.accept", "websocket.send")
        await self._send(message)

    async def refuse(self, error: ClientError, *, challenge: str = "") -> bool:
        """Send the refusal; False when the response has already begun. `challenge`: instead of a plain Bearer."""
        if self._has_begun:
            return False
        # A 503 concerns the operator of the application, all else the user. No detail contains a token.
        level = logging.WARNING if error.status == UNAVAILABLE else logging.INFO
        log.log(level, "answered with %d: %r", error.status, str(error))
        if self._is_websocket:
            if not self._has_received:
                await self._receive()  # the handshake
            await self._send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": error.public})
        else:
            await self._respond(error, challenge)
        return True

    async def _respond(self, error: ClientError, challenge: str) -> None:
        body = msgspec.json.encode({"status": "ERROR", "error": error.public})  # the same text as the service uses
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            *([(b"www-authenticate", challenge.encode())] if challenge else EXTRA_HEADERS.get(error.status, ())),
        ]
        await self._send({"type": "http.response.start", "status": error.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


EXTRA_HEADERS: Final = {
    401: ((b"www-authenticate", b"Bearer"),),
    UNAVAILABLE: ((b"retry-after", RETRY_AFTER),),
}


def bearer_token(scope: Scope) -> str | None:
    given = single_header(scope, b"authorization")
    if given is None:
        return None
    found = BEARER.fullmatch(given)
    if found is None:
        raise Unauthenticated("the Authorization header is not a Bearer token")
    return found[1].decode("latin-1")


def header_text(scope: Scope, name: bytes) -> str | None:
    """Return a header value as UTF-8 text."""
    given = single_header(scope, name)
    if given is None:
        return None
    try:
        return given.decode()
    except UnicodeDecodeError:
        return given.decode("latin-1")


def single_header(scope: Scope, name: bytes) -> bytes | None:
    """Raise Unauthenticated for a repeated header: a reader of the other one would see another user."""
    given: list[bytes] = [value for key, value in scope["headers"] if key.lower() == name]
    if len(given) > 1:
        raise Unauthenticated(f"duplicate header {name.decode()}")
    return given[0] if given else None


# `require("user.kick")`: a dependency for FastAPI; `permission_required("user.kick")`: the same around an endpoint.


class Connection(Protocol):
    """A request or WebSocket of Starlette, or another object with a scope."""

    @property
    def scope(self) -> MutableMapping[str, Any]: ...


V = TypeVar("V")
R = TypeVar("R")
P = ParamSpec("P")
C = TypeVar("C", bound=Connection)
# A value, or how to find it in the request: `lambda request: request.path_params["project"]`.
ValueOrGetter: TypeAlias = V | Callable[[Any], V]


class FastApiSignature:
    """A signature for FastAPI, which passes the request only to a parameter of Starlette's class.

    The caller has Starlette loaded, so it need not be imported here.
    """

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is None:
            raise AttributeError  # the class has an ordinary one
        kind = getattr(sys.modules.get("starlette.requests"), "HTTPConnection", Connection)
        one = inspect.Parameter("connection", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
        return inspect.Signature([one], return_annotation=User)


@dataclass(frozen=True, kw_only=True)
class Requirement:
    rule: str
    project: ValueOrGetter[str] | None = None
    resource: ValueOrGetter[Resource] | None = None

    __signature__ = FastApiSignature()

    async def __call__(self, connection: Connection) -> User:
        """The user, who holds the rule; raise Unauthenticated or Denied, which the middleware answers."""
        user, gatehouse = user_and_client(connection)
        project, resource = resolve_value(self.project, connection), resolve_value(self.resource, connection)
        await gatehouse.require(user, self.rule, project, resource)
        return user


def require(
    rule: str, *, project: ValueOrGetter[str] | None = None, resource: ValueOrGetter[Resource] | None = None
) -> Requirement:
    """`Depends(require("user.kick"))`."""
    return Requirement(rule=rule, project=project, resource=resource)


def permission_required(
    rule: str, *, project: ValueOrGetter[str] | None = None, resource: ValueOrGetter[Resource] | None = None
) -> Callable[[Callable[Concatenate[C, P], Awaitable[R]]], Callable[Concatenate[C, P], Awaitable[R]]]:
    """Around an endpoint whose first argument is the request."""
    needed = require(rule, project=project, resource=resource)

    def around(endpoint: Callable[Concatenate[C, P], Awaitable[R]]) -> Callable[Concatenate[C, P], Awaitable[R]]:
        @functools.wraps(endpoint)
        async def checked(connection: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
            await needed(connection)
            return await endpoint(connection, *args, **kwargs)

        return checked

    return around


def resolve_value(given: ValueOrGetter[V] | None, connection: Connection) -> V | None:
    """Return the value from the request. Raises Denied when it is missing: None would mean the root."""
    if not callable(given):
        return given
    value: V | None = given(connection)
    if value is None:
        raise Denied("the request does not contain the resource")
    return value


def user_and_client(connection: Connection) -> tuple[User, Gatehouse]:
    scope = connection.scope
    if SCOPE_KEY not in scope:
        raise RuntimeError("GatehouseMiddleware is missing")
    if scope["user"] is None:
        raise Unauthenticated("no user JWT")
    return scope["user"], scope[SCOPE_KEY]
