"""Answers at hand: the same for everyone, written to the line without going through the application.

The public keys and the metadata are asked for by every service that verifies a token, all day. What is ordinary about
such a request is answered here, and costs a quarter; whatever is not goes the long way round, which gives the same
answer. Counted, limited and logged it is either way.

Beside it what was answered before to the very same bytes (web/repeated.py), whatever it was.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from gatehouse.web.lasting import Lasting
from gatehouse.web.middleware.access_log import AccessLog
from gatehouse.web.middleware.answers import Header
from gatehouse.web.middleware.client_address import ClientAddress
from gatehouse.web.middleware.forwarding import UnreadableChain
from gatehouse.web.middleware.security_headers import SecurityHeaders
from gatehouse.web.repeated import RepeatedAnswers, Said
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

Spoken = tuple[Said, bytes]  # what was said, and how it goes to the line this time


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
        table = tuple(table)
        self.repeated = RepeatedAnswers(table, limiter=limiter, log=log)
        self._documents = {
            endpoint.path.encode(): (endpoint, endpoint.at_hand) for endpoint in table if endpoint.at_hand is not None
        }
        self._addresses = addresses
        self._dressing = dressing
        self._made: dict[bytes, tuple[bytes, bytes]] = {}  # by path: the lines of the head, and the body

    def answer(
        self, target: bytes, client: tuple[str, int] | None, headers: Sequence[Header], added: Sequence[Header]
    ) -> Spoken | None:
        """The answer to a GET of this target; None when it has to go the long way round."""
        found = self._documents.get(target)
        if found is None or not all(map(is_ordinary, headers)):
            return None
        endpoint, document = found
        try:
            caller = self._addresses.caller({"client": client, "headers": headers})
        except UnreadableChain:
            return None
        lines, body = self._made_of(target, document)
        said = Said(
            endpoint=endpoint.name,
            rate_class=endpoint.rate_class,
            method="GET",
            status=OK,
            source=caller.source,
            status_line=STATUS_LINE,
            headers=lines,
            body=body,
            lasting=Lasting(holds=lambda: document.body() is body),
        )
        answer = self.repeated.again(said, added, begun=self.repeated.begin())
        return None if answer is None else (said, answer)

    def _made_of(self, target: bytes, document: AtHand) -> tuple[bytes, bytes]:
        body = document.body()
        made = self._made.get(target)
        if made is None or made[1] is not body:
            made = self._made[target] = (self._lines(document, body), body)
        return made

    def _lines(self, document: AtHand, body: bytes) -> bytes:
        own: list[Header] = [
            (b"cache-control", document.cache_control.encode()),
            (b"etag", entity_tag(body).encode()),
            (b"content-length", b"%d" % len(body)),
            (b"content-type", JSON),
            (b"access-control-allow-origin", b"*"),
        ]
        return b"".join(b"%b: %b\r\n" % header for header in (*own, *self._dressing.missing(own)))
