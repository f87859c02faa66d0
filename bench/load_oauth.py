"""A load generator in a process of its own that walks through OAuth: each request is made from the answer before.

    python -m bench.load_oauth FILE

FILE is a Walk as JSON. Prints the rate of whole rounds: of `flow` (authorize with a live session, then the code for
tokens), `exchange` (codes for tokens, the codes made beforehand) or `refresh` (each connection its own chain of
refresh tokens). Any answer that is not as it should be ends the run.
"""

import asyncio
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from time import perf_counter
from typing import Final, cast
from urllib.parse import parse_qs, quote

import httptools
import msgspec
import uvloop

LOOPBACK: Final = "127.0.0.1"
PATIENCE: Final = 20.0  # seconds beyond those of the run
CODES: Final = 1_000  # made for one `exchange`, or as many as there are
COLLECTING: Final = 5.0  # seconds later
OK: Final = 200
REDIRECTS: Final = (302, 303)


class OAuthLoad(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    host: str
    port: int
    connections: int
    seconds: float
    authorize: str  # path and query
    cookie: str
    token: str  # path
    basic: str  # the client's credentials
    redirect_uri: str


class OAuthResponse(msgspec.Struct, kw_only=True):
    status: int = 0
    location: str = ""
    body: bytes = b""


Script = Generator[bytes, OAuthResponse, None]


class Requests:
    """The requests of one walk, as they go over the wire."""

    def __init__(self, walk: OAuthLoad) -> None:
        self._walk = walk
        self.authorize = (
            f"GET {walk.authorize} HTTP/1.1\r\nHost: {walk.host}\r\nCookie: {walk.cookie}\r\n\r\n".encode()
        )

    def redeem(self, answer: OAuthResponse) -> bytes:
        if answer.status not in REDIRECTS or not answer.location.startswith(self._walk.redirect_uri):
            raise ConnectionError(f"no way back to the client: {answer}")
        code = parse_qs(answer.location.partition("?")[2])["code"][0]
        return self._post(f"grant_type=authorization_code&code={quote(code)}")

    def refresh(self, answer: OAuthResponse) -> bytes:
        return self._post(f"grant_type=refresh_token&refresh_token={tokens_in(answer)['refresh_token']}")

    def _post(self, form: str) -> bytes:
        body = f"{form}&redirect_uri={quote(self._walk.redirect_uri, safe='')}"
        head = (
            f"POST {self._walk.token} HTTP/1.1\r\nHost: {self._walk.host}\r\n"
            f"Authorization: Basic {self._walk.basic}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return (head + body).encode()


def tokens_in(answer: OAuthResponse) -> dict[str, str | int]:
    if answer.status != OK:
        raise ConnectionError(f"no tokens: {answer}")
    return msgspec.json.decode(answer.body, type=dict[str, str | int])


class LoadRun:
    """What all connections of one measurement share."""

    def __init__(self, seconds: float) -> None:
        self.done: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._rounds = 0
        self._begin = 0.0
        self._seconds = seconds

    def start(self) -> None:
        self._begin = self._begin or perf_counter()

    def count_round(self) -> bool:
        """Count a round; True while there is to be another."""
        self._rounds += 1
        if self.elapsed() >= self._seconds:
            self.finish()
        return not self.done.done()

    def elapsed(self) -> float:
        return perf_counter() - self._begin

    def finish(self) -> None:
        if not self.done.done():
            self.done.set_result(self._rounds / self.elapsed())

    def fail(self, trouble: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(trouble)


def flow(ask: Requests, run: LoadRun) -> Script:
    run.start()
    while True:
        tokens_in((yield ask.redeem((yield ask.authorize))))
        if not run.count_round():
            return


def refresh(ask: Requests, run: LoadRun) -> Script:
    answer = yield ask.redeem((yield ask.authorize))
    run.start()
    while True:
        answer = yield ask.refresh(answer)
        if not run.count_round():
            return


def collect(ask: Requests, run: LoadRun, redemptions: list[bytes]) -> Script:
    run.start()
    while len(redemptions) < CODES and run.elapsed() < COLLECTING:
        redemptions.append(ask.redeem((yield ask.authorize)))
    run.finish()


def redeem(run: LoadRun, redemptions: list[bytes]) -> Script:
    run.start()
    while redemptions:
        tokens_in((yield redemptions.pop()))
        if not run.count_round():
            return
    run.finish()


class OAuthConnection(asyncio.Protocol):
    def __init__(self, script: Script, run: LoadRun) -> None:
        self._script = script
        self._run = run
        self._answer = OAuthResponse()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self._step(lambda: next(self._script))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._run.fail(ConnectionError("the server closed a connection"))

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"location":
            self._answer.location = value.decode()

    def on_body(self, body: bytes) -> None:
        self._answer.body += body

    def on_message_complete(self) -> None:
        answer, self._answer = self._answer, OAuthResponse()
        answer.status = self._parser.get_status_code()
        self._step(lambda: self._script.send(answer))

    def _step(self, step: Callable[[], bytes]) -> None:
        try:
            request = step()
        except StopIteration:
            return
        except (ConnectionError, KeyError, msgspec.MsgspecError) as trouble:
            self._run.fail(trouble)
            return
        if self._transport is not None:
            self._transport.write(request)


async def measure(walk: OAuthLoad, script: Callable[[LoadRun], Script]) -> float:
    run = LoadRun(walk.seconds)
    loop = asyncio.get_running_loop()
    opened = [
        await loop.create_connection(lambda: OAuthConnection(script(run), run), LOOPBACK, walk.port)
        for _ in range(walk.connections)
    ]
    try:
        async with asyncio.timeout(walk.seconds + PATIENCE):
            return await run.done
    finally:
        for transport, _ in opened:
            transport.close()


async def main(walk: OAuthLoad) -> float:
    ask = Requests(walk)
    if walk.kind == "flow":
        return await measure(walk, lambda run: flow(ask, run))
    if walk.kind == "refresh":
        return await measure(walk, lambda run: refresh(ask, run))
    redemptions: list[bytes] = []
    await measure(walk, lambda run: collect(ask, run, redemptions))
    return await measure(walk, lambda run: redeem(run, redemptions))


if __name__ == "__main__":
    uvloop.install()
    print(asyncio.run(main(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=OAuthLoad))))
