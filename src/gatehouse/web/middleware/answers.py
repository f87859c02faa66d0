"""Adding headers to an answer on its way out."""

from collections.abc import Callable, Iterable
from typing import Final

from starlette.types import Message, Send

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
