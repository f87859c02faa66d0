"""ASGI middleware: adds the user to every request and answers those that are not allowed.

It is plain ASGI without Starlette, so it works with every ASGI application.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias

import msgspec

from gatehouse.client.errors import ClientError, Unauthenticated
from gatehouse.client.gatehouse import Gatehouse
from gatehouse.client.verification import User

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
AddressOf: TypeAlias = Callable[[Mapping[str, Any]], str | None]

log: Final = logging.getLogger("gatehouse.client")
SCOPE_KEY: Final = "gatehouse.client"  # in the scope: whom `require` asks
BEARER: Final = re.compile(rb"bearer +([^\s,]+)", re.IGNORECASE)
POLICY_VIOLATION: Final = 1008  # RFC 6455 §7.4.1; before the handshake is accepted the server makes it a 403
UNAVAILABLE: Final = 503
RETRY_AFTER: Final = "2"  # seconds


def no_address(_request: Mapping[str, Any]) -> None:
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
        log_refusal(error)
        if self._is_websocket:
            if not self._has_received:
                await self._receive()  # the handshake
            await self._send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": error.public})
        else:
            await self._respond(error, challenge)
        return True

    async def _respond(self, error: ClientError, challenge: str) -> None:
        headers, body = refusal_content(error, challenge)
        encoded = [(name.encode(), value.encode()) for name, value in headers]
        await self._send({"type": "http.response.start", "status": error.status, "headers": encoded})
        await self._send({"type": "http.response.body", "body": body})


def log_refusal(error: ClientError) -> None:
    # A 503 concerns the operator of the application, all else the user. No detail contains a token.
    level = logging.WARNING if error.status == UNAVAILABLE else logging.INFO
    log.log(level, "answered with %d: %r", error.status, str(error))


def refusal_content(error: ClientError, challenge: str = "") -> tuple[list[tuple[str, str]], bytes]:
    """Return the headers and the body of a refusal; the same text as the service uses."""
    body = msgspec.json.encode({"status": "ERROR", "error": error.public})
    headers = [
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("cache-control", "no-store"),
        *([("www-authenticate", challenge)] if challenge else EXTRA_HEADERS.get(error.status, ())),
    ]
    return headers, body


EXTRA_HEADERS: Final = {
    401: (("www-authenticate", "Bearer"),),
    UNAVAILABLE: (("retry-after", RETRY_AFTER),),
}


def bearer_token(scope: Scope) -> str | None:
    return parse_bearer(single_header(scope, b"authorization"))


def parse_bearer(given: bytes | None) -> str | None:
    if given is None:
        return None
    found = BEARER.fullmatch(given)
    if found is None:
        raise Unauthenticated("the Authorization header is not a Bearer token")
    return found[1].decode("latin-1")


def header_text(scope: Scope, name: bytes) -> str | None:
    return decode_header(single_header(scope, name))


def decode_header(given: bytes | None) -> str | None:
    """Return a header value as UTF-8 text."""
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
