"""Call an ASGI application directly, without a server."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.kernel.addresses import Network
from gatehouse.throttle.rate_limiter import RateLimiter
from gatehouse.web.http.context import RequestContext, RespondingApp
from gatehouse.web.http.errors import Dialect, ErrorRenderer, plain_error_page
from gatehouse.web.http.routing import (
    DEFAULT_BODY_LIMIT,
    Endpoint,
    Handler,
    RateClass,
    build_application,
)
from tests.support.clock import MovableClock

Pair = tuple[str, str]


@dataclass(slots=True)
class AsgiCall:
    """One request to an application, and everything the application sent."""

    scope: Scope
    chunks: Sequence[bytes] = (b"",)
    sent: list[Message] = field(default_factory=list)
    received: int = 0

    async def receive(self) -> Message:
        if self.received == len(self.chunks):
            return {"type": "http.disconnect"}
        body = self.chunks[self.received]
        self.received += 1
        return {"type": "http.request", "body": body, "more_body": self.received < len(self.chunks)}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        status: int = self.sent[0]["status"]
        return status

    @property
    def headers(self) -> list[Pair]:
        return [(name.decode(), value.decode()) for name, value in self.sent[0]["headers"]]

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])


def an_asgi_call(
    *,
    path: str = "/",
    headers: Iterable[Pair] = (),
    client: tuple[str, int] | None = ("192.0.2.1", 50_000),
    chunks: Sequence[bytes] = (b"",),
    kind: str = "http",
) -> AsgiCall:
    """`chunks` are the parts of the body; without an announced length they are sent as such."""
    named = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    if any(chunks) and b"content-length" not in dict(named):
        named.append((b"transfer-encoding", b"chunked"))
    scope: dict[str, Any] = {
        "type": kind,
        "method": "POST",
        "path": path,
        "headers": named,
        "client": client,
        "state": {},
    }
    return AsgiCall(scope, chunks)


async def call_asgi(app: ASGIApp, exchange: AsgiCall) -> AsgiCall:
    await app(exchange.scope, exchange.receive, exchange.send)
    return exchange


@dataclass(slots=True)
class RecordingApp:
    """An application that reads the whole body and responds 200 with the given headers."""

    answer_headers: Sequence[Pair] = ()
    scopes: list[Scope] = field(default_factory=list)
    body: bytes = b""
    client_left: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        more = scope["type"] == "http"
        while more:
            message = await receive()
            self.client_left = message["type"] == "http.disconnect"
            self.body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = [(name.encode(), value.encode()) for name, value in self.answer_headers]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"fine"})

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self(scope, receive, send)


def in_context(
    app: RespondingApp, *, https: bool = True, trusted_proxies: tuple[Network, ...] = ()
) -> RequestContext:
    errors = ErrorRenderer(render_error=plain_error_page)
    return RequestContext(app, errors=errors, https=https, trusted_proxies=trusted_proxies)


class UnlimitedRates(RateLimiter):
    """A rate limiter that admits every request and records its arguments."""

    def __init__(self) -> None:
        super().__init__({}, clock=MovableClock())
        self.asked: list[tuple[str, str]] = []

    def admit(self, rate_class: str, source: str) -> int:
        self.asked.append((rate_class, source))
        return 0


class AsgiResponse(Response):
    """A response that an ASGI application sends itself."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def as_handler(app: ASGIApp, streaming: Collection[str] = ()) -> Handler:
    """Run an ASGI application as a handler; on streaming paths it reads and sends while the response is sent."""

    async def handle(request: Request) -> Response:
        if request.url.path in streaming:
            return AsgiResponse(app)
        sent: list[Message] = []

        async def collect(message: Message) -> None:
            sent.append(message)

        await app(request.scope, request.receive, collect)
        if not sent:
            raise ClientDisconnect

        async def replay(_scope: Scope, _receive: Receive, send: Send) -> None:
            for message in sent:
                await send(message)

        return AsgiResponse(replay)

    return handle


def at_path(
    app: ASGIApp,
    *,
    path: str = "/{any:path}",
    body_limit: int = DEFAULT_BODY_LIMIT,
    streaming: Collection[str] = (),
) -> ASGIApp:
    """An ASGI application as the endpoint of a path, with the body limit that the endpoint declares."""
    endpoint = Endpoint(
        name="tests.app",
        path=path,
        methods=("GET", "POST"),
        handler=as_handler(app, streaming),
        dialect=Dialect.PLAIN,
        rate_class=RateClass.PUBLIC,
        body_limit=body_limit,
    )
    errors = ErrorRenderer(render_error=plain_error_page)
    return in_context(build_application([endpoint], limiter=UnlimitedRates(), errors=errors))
