"""A server with scripted responses that a real service gives rarely; it records requests and their times."""

import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any, Final

from tests.support.processes import LOOPBACK

GSID: Final = "9f1c2a54-6b1d-4d07-9a3e-2f4f0c0b7a11"
LOCATION: Final = "kQ3v-_9xYt0PzLw2AbCdEf"
TIMEOUT: Final = 20.0  # seconds
HOLDS: Final = 60.0  # seconds: longer than any test game may take
DRIP: Final = 0.3  # seconds between two bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    status: int = 200
    body: Mapping[str, Any] | bytes = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    held: bool = False  # until the test has ended
    stalls: bool = False  # after the head, send nothing until the test has ended
    drips: bool = False  # send single bytes slowly, and never all of them


CLOSED: Final = ScriptedReply(body={"status": "OK"})


def retry(delay: int, state: str = "waiting") -> ScriptedReply:
    return ScriptedReply(
        body={"status": "RETRY", "gsid": GSID, "delay": delay, "state": state, "ts": 1, "started": 1}
    )


def error(record: str, status: int = 200, **headers: str) -> ScriptedReply:
    return ScriptedReply(status=status, body={"status": "ERROR", "error": record}, headers=headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedCall:
    name: str
    query: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    at: float


class Responder:
    """Polls, and getGsid if scripted, get the next reply; the last one repeats. closeGsid always gets the same."""

    def __init__(
        self,
        replies: Sequence[ScriptedReply],
        *,
        registered: Sequence[ScriptedReply] = (),
        closed: ScriptedReply = CLOSED,
    ) -> None:
        self.calls: list[ReceivedCall] = []
        self.address = ""
        self._replies = list(replies)
        self._registered = list(registered)
        self._closed = closed
        self._changed = threading.Condition()
        self.ended = threading.Event()

    @property
    def polls(self) -> list[ReceivedCall]:
        return [call for call in self.calls if call.name == "getGsidResult"]

    @property
    def closings(self) -> list[Mapping[str, Any]]:
        return [call.body for call in self.calls if call.name == "closeGsid"]

    def wait_for(self, name: str, number: int = 1) -> ReceivedCall:
        """Wait for the first, or a later, request of this name."""

        def received() -> list[ReceivedCall]:
            return [call for call in self.calls if call.name == name]

        with self._changed:
            assert self._changed.wait_for(lambda: len(received()) >= number, TIMEOUT), f"{name} was not called"
        return received()[number - 1]

    def answer(self, call: ReceivedCall) -> ScriptedReply:
        with self._changed:
            self.calls.append(call)
            self._changed.notify_all()
            if call.name == "getGsid":
                return next_of(self._registered) if self._registered else self._registration()
            if call.name == "closeGsid":
                return self._closed
            return next_of(self._replies)

    def _registration(self) -> ScriptedReply:
        body = {"status": "OK", "gsid": GSID, "ts": 1, "started": 1, "url": f"{self.address}/?gsid={GSID}"}
        more = {"code": "42", "qr": "data:image/svg+xml;base64,PHN2Zy8+"}
        poll = f"/proxy/api/gameSession/getGsidResult?location={LOCATION}"
        return ScriptedReply(body={**body, **more}, headers={"Location": poll})


def next_of(replies: list[ScriptedReply]) -> ScriptedReply:
    return replies.pop(0) if len(replies) > 1 else replies[0]


def handler_for(responder: Responder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            path, _, query = self.path.partition("?")
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
            name = path.rpartition("/")[2]
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = ReceivedCall(name=name, query=query, body=body, headers=headers, at=time.monotonic())
            self._send(responder.answer(call))

        do_GET = do_POST  # noqa: N815 - some follow a redirect so

        def _send(self, reply: ScriptedReply) -> None:
            if reply.held:
                responder.ended.wait(HOLDS)
                self.close_connection = True
                return
            content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(content)), "Connection": "close", **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if reply.stalls or reply.drips:
                drip(content if reply.drips else b"", self.wfile, responder.ended)
            else:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler


def drip(content: bytes, into: BufferedIOBase, ended: threading.Event) -> None:
    for byte in content[:-1]:
        into.write(bytes([byte]))
        if ended.wait(DRIP):
            return
    ended.wait(HOLDS)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """Ignore errors: some tests let the client disconnect."""


@contextmanager
def scripted_responder(
    *replies: ScriptedReply,
    registered: Sequence[ScriptedReply] = (),
    closed: ScriptedReply = CLOSED,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Responder]:
    responder = Responder(replies or [retry(0)], registered=registered, closed=closed)
    with Server((LOOPBACK, 0), handler_for(responder)) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        responder.address = f"http{'' if tls is None else 's'}://localhost:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        serving.start()
        yield responder
        responder.ended.set()
        server.shutdown()
        serving.join(TIMEOUT)
