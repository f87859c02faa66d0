"""Calling an ASGI application directly, without a server."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

Pair = tuple[str, str]


@dataclass(slots=True)
class AsgiCall:
    """One request to an application, and everything it sent."""

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
    scope: dict[str, Any] = {
        "type": kind,
        "method": "POST",
        "path": path,
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "client": client,
        "state": {},
    }
    return AsgiCall(scope, chunks)


async def call_asgi(app: ASGIApp, exchange: AsgiCall) -> AsgiCall:
    await app(exchange.scope, exchange.receive, exchange.send)
    return exchange


@dataclass(slots=True)
class RecordingApp:
    """An application that reads the whole body and answers 200 with these headers."""

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
