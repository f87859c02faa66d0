"""Answers that are given once more: the very same bytes from the same address ask the very same question.

Whoever answered said for how long the answer holds (web/lasting.py); until then it goes out again without being made
again. Counted, limited and logged it is as the first time, under an id and a date of its own.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.types import Scope

from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_request_id
from gatehouse.web.lasting import Lasting, lasting_of
from gatehouse.web.middleware.access_log import AccessLog
from gatehouse.web.middleware.answers import Header
from gatehouse.web.middleware.client_address import caller_of
from gatehouse.web.routes.table import Endpoint, RateClass, VolumeLimiter

KEPT_BYTES: Final = 16 * 2**20  # of answers, in one process
BESIDE: Final = 1_600  # bytes that keeping an answer takes beside its own
LONGEST_ANSWER: Final = 2**18
LONGEST_QUESTION: Final = 4_096
CREDIT_MOST: Final = 64  # how much more often than not asking may be in vain
LEFT_OUT: Final = 63  # questions between two that are asked about, once that is used up
REQUEST_ID: Final = b"x-request-id"
LINE_END: Final = b"\r\n"
STATUS: Final = slice(len("HTTP/1.1 "), len("HTTP/1.1 200"))

Question = tuple[str, bytes]


def question_of(client: tuple[str, int] | None, data: bytes) -> Question | None:
    """The caller's address, and the digest of all that he sent: credentials are not kept for this."""
    return None if client is None or len(data) > LONGEST_QUESTION else (client[0], sha256(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer as it went to the line, without what belongs to one request: its date and its id."""

    endpoint: str
    rate_class: RateClass
    method: str
    status: int
    source: str
    status_line: bytes
    headers: bytes  # whole lines
    body: bytes
    lasting: Lasting


class Asking:
    """Whether it pays to ask if an answer still holds.

    On a database that is written to all the time none does. Once it has been in vain more often than not, only one
    question of many is used to find out whether that has changed.
    """

    def __init__(self) -> None:
        self._credit = CREDIT_MOST
        self._left_out = 0  # questions that are not to be asked about

    def pays(self) -> bool:
        if self._left_out:
            self._left_out -= 1
            return False
        return True

    def learn(self, *, held: bool) -> None:
        self._credit = min(self._credit + 1, CREDIT_MOST) if held else max(self._credit - 1, 0)
        self._left_out = 0 if self._credit else LEFT_OUT


class RepeatedAnswers:
    def __init__(self, table: Iterable[Endpoint], *, limiter: VolumeLimiter, log: AccessLog) -> None:
        self._rates = {endpoint.name: endpoint.rate_class for endpoint in table}
        self._limiter = limiter
        self._log = log
        self._kept: OrderedDict[Question, Said] = OrderedDict()
        self._bytes = 0
        self._asking = Asking()
        self._added: tuple[Sequence[Header], bytes] = ((), b"")  # the same for a second: written once

    def find(self, question: Question) -> Said | None:
        """What was answered to it before, if it is worth finding out whether that is still the answer."""
        said = self._kept.get(question)
        if said is None:
            return None
        if said.lasting.renew is not None:
            if not said.lasting.holds():  # as far as has been heard, and no moment comes back
                self._forget(question)
                return None
            if not self._asking.pays():
                return None
        self._kept.move_to_end(question)
        return said

    def begin(self) -> float:
        return self._log.begin()

    def again(self, said: Said, added: Sequence[Header], *, begun: float) -> bytes | None:
        """Head and body; None when it no longer holds, or for the application to tell that it is too much."""
        holds, share = said.lasting.holds(), said.lasting.share
        if said.lasting.renew is not None:
            self._asking.learn(held=holds)
        if not holds or (share is not None and not share.has_room()):
            return None
        if self._limiter.admit(said.rate_class, said.source):
            return None
        if share is not None:
            share.take()
        request_id = self._tell(said, said.status, begun=begun)
        own = b"%b: %b\r\n\r\n" % (REQUEST_ID, request_id.encode())
        return b"".join((said.status_line, self._lines(added), said.headers, own, said.body))

    def left(self, said: Said, *, begun: float) -> None:
        """Whoever asked has gone before it was known whether it still is the answer; he counts all the same."""
        if self._limiter.admit(said.rate_class, said.source):
            self._tell(said, HTTPStatus.TOO_MANY_REQUESTS, begun=begun)
            return
        if said.lasting.share is not None:
            said.lasting.share.take()
        self._tell(said, said.status, begun=begun)

    def _tell(self, said: Said, status: int, *, begun: float) -> str:
        """To the log and the figures. Returns the request's id."""
        request_id = new_request_id()
        self._log.tell(
            endpoint=said.endpoint,
            method=said.method,
            status=status,
            begun=begun,
            source=said.source,
            request_id=request_id,
        )
        return request_id

    def note(self, question: Question, scope: Scope, written: Sequence[bytes], added: int) -> None:
        """Keep what went to the line in answer to a request, if its endpoint says that it lasts.

        `added`: how many header lines the server put before those of the application.
        """
        lasting = lasting_of(scope["state"])
        rate_class = self._rates.get(scope["state"].get("endpoint", ""))
        if lasting is None or rate_class is None or len(written) != len(("head", "body")):
            return
        status_line, *headers = written[0].removesuffix(LINE_END).splitlines(keepends=True)
        said = Said(
            endpoint=scope["state"]["endpoint"],
            rate_class=rate_class,
            method=scope["method"],
            status=int(status_line[STATUS]),
            source=caller_of(scope).source,
            status_line=status_line,
            headers=b"".join(line for line in headers[added:] if not line.startswith(REQUEST_ID)),
            body=written[1],
            lasting=lasting,
        )
        self.keep(question, said)

    def keep(self, question: Question, said: Said) -> None:
        if len(said.body) > LONGEST_ANSWER:
            return
        self._forget(question)
        self._kept[question] = said
        self._bytes += size(said)
        while self._bytes > KEPT_BYTES:
            self._forget(next(iter(self._kept)))

    def _forget(self, question: Question) -> None:
        said = self._kept.pop(question, None)
        if said is not None:
            self._bytes -= size(said)

    def _lines(self, added: Sequence[Header]) -> bytes:
        if self._added[0] is not added:
            self._added = (added, b"".join(b"%b: %b\r\n" % header for header in added))
        return self._added[1]


def size(said: Said) -> int:
    return len(said.headers) + len(said.body) + BESIDE
