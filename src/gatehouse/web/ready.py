"""Answers at hand: the same for everyone, written to the line without going through the application.

The public keys and the metadata are asked for by every service that verifies a token, all day. What is ordinary about
such a request is answered here, and costs a quarter; whatever is not goes the long way round, which gives the same
answer. Counted, limited and logged it is either way.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from gatehouse.kernel.ids import new_request_id
from gatehouse.web.middleware.access_log import AccessLog
from gatehouse.web.middleware.answers import Header
from gatehouse.web.middleware.client_address import ClientAddress
from gatehouse.web.middleware.forwarding import UnreadableChain
from gatehouse.web.middleware.security_headers import SecurityHeaders
from gatehouse.web.responses import entity_tag
from gatehouse.web.routes.table import AtHand, Endpoint, VolumeLimiter

OK: Final = 200
STATUS_LINE: Final = b"HTTP/1.1 200 OK\r\n"
JSON: Final = b"application/json"
# A request with one of these asks for something more than the document.
EXTRAORDINARY: Final = frozenset(
    {b"if-none-match", b"content-length", b"transfer-encoding", b"expect", b"connection", b"upgrade"}
)
KEPT_OPEN: Final = (b"connection", b"keep-alive")  # which HTTP/1.1 does anyway


def is_ordinary(header: Header) -> bool:
    return header[0] not in EXTRAORDINARY or (header[0], header[1].lower()) == KEPT_OPEN


class ReadyAnswers:
    def __init__(
        self,
        table: Iterable[Endpoint],
        *,
        addresses: ClientAddress,
        limiter: VolumeLimiter,
        dressing: SecurityHeaders,
        log: AccessLog,
    ) -> None:
        self._documents = {
            endpoint.path.encode(): (endpoint, endpoint.at_hand) for endpoint in table if endpoint.at_hand is not None
        }
        self._addresses = addresses
        self._limiter = limiter
        self._dressing = dressing
        self._log = log
        self._made: dict[bytes, tuple[bytes, bytes]] = {}  # by path: the head, without its end, and its body

    def answer(
        self, target: bytes, client: tuple[str, int] | None, headers: Sequence[Header], added: Sequence[Header]
    ) -> bytes | None:
        """The answer to a GET of this target, head and body; None when it has to go the long way round."""
        found = self._documents.get(target)
        if found is None or not all(map(is_ordinary, headers)):
            return None
        endpoint, document = found
        begun = self._log.begin()
        try:
            caller = self._addresses.caller({"client": client, "headers": headers})
        except UnreadableChain:
            return None
        if self._limiter.admit(endpoint.rate_class, caller.source):
            return None  # the long way round says so
        request_id = new_request_id()
        head, body = self._made_of(target, document)
        changing = b"".join(b"%b: %b\r\n" % header for header in (*added, (b"x-request-id", request_id.encode())))
        self._log.tell(
            endpoint=endpoint.name,
            method="GET",
            status=OK,
            begun=begun,
            source=caller.source,
            request_id=request_id,
        )
        return b"".join((head, changing, b"\r\n", body))

    def _made_of(self, target: bytes, document: AtHand) -> tuple[bytes, bytes]:
        body = document.body()
        made = self._made.get(target)
        if made is None or made[1] is not body:
            made = self._made[target] = (self._head(document, body), body)
        return made

    def _head(self, document: AtHand, body: bytes) -> bytes:
        own: list[Header] = [
            (b"cache-control", document.cache_control.encode()),
            (b"etag", entity_tag(body).encode()),
            (b"content-length", b"%d" % len(body)),
            (b"content-type", JSON),
            (b"access-control-allow-origin", b"*"),
        ]
        return STATUS_LINE + b"".join(b"%b: %b\r\n" % header for header in (*own, *self._dressing.missing(own)))
