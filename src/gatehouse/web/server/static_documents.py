"""Pre-rendered responses for public documents, written to the connection without entering the application.

Every service that verifies a token asks for the key set and the metadata, all day. A plain GET of one of them is
answered here at a quarter of the cost; any other request takes the ordinary path, which gives the same response.
Either way it is counted, rate limited and logged.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from gatehouse.kernel.ids import new_request_id
from gatehouse.web.http.client_address import UnreadableChain
from gatehouse.web.http.context import AccessLog, RequestContext
from gatehouse.web.http.responses import Header, entity_tag
from gatehouse.web.http.routing import Endpoint, EndpointRateLimiter, StaticDocument

OK: Final = 200
STATUS_LINE: Final = b"HTTP/1.1 200 OK\r\n"
JSON: Final = b"application/json"
# A request with one of these asks for more than the document.
UNSUPPORTED_HEADERS: Final = frozenset(
    {b"if-none-match", b"content-length", b"transfer-encoding", b"expect", b"connection", b"upgrade"}
)
KEEP_ALIVE_HEADER: Final = (b"connection", b"keep-alive")  # which HTTP/1.1 does anyway


def is_supported_header(header: Header) -> bool:
    return header[0] not in UNSUPPORTED_HEADERS or (header[0], header[1].lower()) == KEEP_ALIVE_HEADER


class StaticDocuments:
    def __init__(
        self,
        table: Iterable[Endpoint],
        *,
        context: RequestContext,
        limiter: EndpointRateLimiter,
        log: AccessLog,
    ) -> None:
        self._documents = {
            endpoint.path.encode(): (endpoint, endpoint.static) for endpoint in table if endpoint.static is not None
        }
        self._context = context
        self._limiter = limiter
        self._log = log
        self._render_cache: dict[bytes, tuple[bytes, bytes]] = {}  # by path: header lines and body

    def response(
        self, target: bytes, client: tuple[str, int] | None, headers: Sequence[Header], added: Sequence[Header]
    ) -> bytes | None:
        """The whole response to a GET of this target; None when the ordinary path must answer.

        `added`: the headers that the server puts before those of the application.
        """
        found = self._documents.get(target)
        if found is None or not all(map(is_supported_header, headers)):
            return None
        begun = self._log.start_timer()
        endpoint, document = found
        try:
            source = self._context.resolve({"client": client, "headers": headers}).source
        except UnreadableChain:
            return None
        body = document.body()
        if body is None or self._limiter.admit(endpoint.rate_class, source):
            return None
        lines = self._header_lines_of(target, document, body)
        request_id = new_request_id()
        self._log.record_request(
            endpoint=endpoint.name, method="GET", status=OK, begun=begun, source=source, request_id=request_id
        )
        own = b"x-request-id: %b\r\n\r\n" % request_id.encode()
        return b"".join((STATUS_LINE, header_lines(added), lines, own, body))

    def _header_lines_of(self, target: bytes, document: StaticDocument, body: bytes) -> bytes:
        rendered = self._render_cache.get(target)
        if rendered is None or rendered[1] is not body:
            rendered = self._render_cache[target] = (self._headers_of(document, body), body)
        return rendered[0]

    def _headers_of(self, document: StaticDocument, body: bytes) -> bytes:
        own: list[Header] = [
            (b"cache-control", document.cache_control.encode()),
            (b"etag", entity_tag(body).encode()),
            (b"content-length", b"%d" % len(body)),
            (b"content-type", JSON),
            (b"access-control-allow-origin", b"*"),
        ]
        return header_lines((*own, *self._context.missing_headers(own)))


def header_lines(headers: Iterable[Header]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)
