"""How middleware turns a request away before any endpoint has seen it."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.types import Receive, Scope, Send

RefuseRequest = Callable[[int, Scope, Receive, Send], Awaitable[None]]


async def refuse_in_plain_text(status: int, scope: Scope, _receive: Receive, send: Send) -> None:
    """The status in words. `web/errors.py` has one that speaks the endpoint's dialect."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    text = HTTPStatus(status).phrase.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
