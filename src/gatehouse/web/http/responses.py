"""The kinds of responses. Caches store nothing unless an endpoint allows it."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop

Header = tuple[bytes, bytes]
# In the scope: the server's way to send a whole response in one write.
WRITE_RESPONSE_KEY: Final = "gatehouse.write_response"
LINE_BREAKS: Final = b"\r\n\0"
NO_STORE: Final = {"Cache-Control": "no-store"}
SEE_OTHER: Final = 303  # never a status that repeats the body after a POST with credentials (checklist LG-25)
NOT_MODIFIED: Final = 304
TAG_DIGITS: Final = 32
TAG_CACHE_SIZE: Final = 32  # documents; few are served, and each of them often
MAX_CACHED_DOCUMENT: Final = 32_768  # bytes
JSON_HEADERS: Final[tuple[Header, ...]] = ((b"cache-control", b"no-store"), (b"content-type", b"application/json"))


def header_lines(headers: Iterable[Header]) -> bytes:
    """Render headers. Raises ValueError for a name or value with a line break (checklist HT-13)."""
    lines = [*map(b": ".join, headers), b""]
    rendered = b"\r\n".join(lines)
    if len(rendered) - len(rendered.translate(None, LINE_BREAKS)) != 2 * (len(lines) - 1):
        raise ValueError("line break in a response header")
    return rendered


class PreparedResponse(Response):
    """A response with its final body and headers: Starlette's constructor costs more than encoding a small body."""

    def __init__(self, body: bytes, status: int, headers: Iterable[Header]) -> None:
        self.status_code = status
        self.background = None
        self.body = body
        self.raw_headers = [*headers, (b"content-length", b"%d" % len(body))]


def json_response(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    response = PreparedResponse(msgspec.json.encode(value), status, JSON_HEADERS)
    if headers:
        response.headers.update(headers)
    return response


def html_response(page: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(page, status, {**NO_STORE, **(headers or {})}, media_type="text/html")


class OffLoopHtmlResponse(Response):
    """A page that may be long, rendered off the event loop when it is sent."""

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
    """Redirect the browser; the caller of this function has checked that the address is allowed."""
    return RedirectResponse(location, SEE_OTHER, {**NO_STORE, **(headers or {})})


def cacheable_response(request: Request, body: bytes, *, media_type: str, cache_control: str) -> Response:
    """Return a response that is the same for everyone, with an ETag of its content; 304 for a caller who has it."""
    tag = entity_tag(body)
    known = request.headers.get("if-none-match")
    if known and tag in known:
        return Response(None, NOT_MODIFIED, {"Cache-Control": cache_control, "ETag": tag})
    headers = (
        (b"cache-control", cache_control.encode()),
        (b"etag", tag.encode()),
        (b"content-type", media_type.encode()),
    )
    return PreparedResponse(body, 200, headers)


def entity_tag(body: bytes) -> str:
    return cached_digest_tag(body) if len(body) <= MAX_CACHED_DOCUMENT else digest_tag(body)


def digest_tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:TAG_DIGITS]}"'


cached_digest_tag: Final = lru_cache(maxsize=TAG_CACHE_SIZE)(digest_tag)
