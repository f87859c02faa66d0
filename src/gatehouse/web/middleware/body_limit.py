"""How large a request may be (S-19, checklist HT-02, HT-07)."""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.web.middleware.answers import Header, with_headers
from gatehouse.web.middleware.refusal import RefuseRequest, refuse_in_plain_text

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
