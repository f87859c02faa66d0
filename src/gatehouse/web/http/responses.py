"""Adding headers to an answer on its way out."""

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Message, Receive, Scope, Send

from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop

Header = tuple[bytes, bytes]
RESPONSE_STARTS: Final = ("http.response.start", "websocket.http.response.start")


def with_headers(send: Send, added: Callable[[Iterable[Header]], Iterable[Header]]) -> Send:
    """A send that asks `added`, once per answer, which headers to add to those already there."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] in RESPONSE_STARTS:
            present = message.get("headers", ())
            message = {**message, "headers": [*present, *added(present)]}
        await send(message)

    return send_with_headers


# How middleware turns a request away before any endpoint has seen it.


RefuseRequest = Callable[[int, Scope, Receive, Send], Awaitable[None]]


async def refuse_in_plain_text(status: int, scope: Scope, _receive: Receive, send: Send) -> None:
    """The status in words. `web/http/errors.py` has one that speaks the endpoint's dialect."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    text = HTTPStatus(status).phrase.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


# The few shapes of an answer. Nothing is kept by caches unless an endpoint says that it may.


NO_STORE: Final = {"Cache-Control": "no-store"}
SEE_OTHER: Final = 303  # after a POST with credentials never a status that repeats the body (checklist LG-25)
NOT_MODIFIED: Final = 304
TAG_DIGITS: Final = 32


def json_response(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(value)
    return Response(body, status, {**NO_STORE, **(headers or {})}, media_type="application/json")


def html_response(page: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(page, status, {**NO_STORE, **(headers or {})}, media_type="text/html")


class OffLoopHtmlResponse(Response):
    """A page that may be long: it is rendered off the event loop, when it is sent."""

    media_type = "text/html"

    def __init__(self, make: Callable[[], str], *, status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(None, status, {**NO_STORE, **(headers or {})})
        del self.headers["Content-Length"]
        self._render_page = make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.body = await run_off_loop(OFF_LOOP_WEIGHT, lambda: self.render(self._render_page()))
        self.headers["Content-Length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def see_other(location: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """Send the browser on; the caller has decided that the address is one it may be sent to."""
    return RedirectResponse(location, SEE_OTHER, {**NO_STORE, **(headers or {})})


def cacheable_response(request: Request, body: bytes, *, media_type: str, cache_control: str) -> Response:
    """An answer that is the same for everyone: tagged by its content, 304 for a caller who has it."""
    tag = entity_tag(body)
    headers = {"Cache-Control": cache_control, "ETag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(None, NOT_MODIFIED, headers)
    return Response(body, 200, headers, media_type=media_type)


def entity_tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:TAG_DIGITS]}"'
