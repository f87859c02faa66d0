"""A load generator in a process of its own for OAuth, where each request is made from the response before.

    python -m bench.load_oauth

Reads an OAuthLoad as JSON from stdin and prints a LoadResult as JSON. An operation is a `flow` (authorize with an
active session, then the code for tokens), an `exchange` (a code for tokens, from codes issued beforehand) or a
`refresh` (each connection has its own chain of refresh tokens). An unexpected response ends the run.
"""

import asyncio
import sys
from collections.abc import Callable, Generator
from itertools import count
from typing import Final, cast
from urllib.parse import parse_qs, quote

import httptools
import msgspec
import uvloop
from bench.load import FIRST_NUMBER, NUMBER, OK, Load, LoadResult, LoadRun, measure

CODES: Final = 1_000  # issued for one `exchange`, at most
COLLECT_SECONDS: Final = 5.0  # at most, for issuing them
REDIRECTS: Final = (302, 303)


class OAuthLoad(Load, frozen=True, kw_only=True):
    kind: str
    host: str
    authorize: str  # path and query, with `{number}` where each request has another number
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
    """The requests of a load, as bytes."""

    def __init__(self, load: OAuthLoad) -> None:
        self._load = load
        self._numbers = count(FIRST_NUMBER)

    def authorize_path(self) -> str:
        return self._load.authorize.replace(NUMBER.decode(), str(next(self._numbers)))

    def authorize(self) -> bytes:
        head = f"GET {self.authorize_path()} HTTP/1.1\r\nHost: {self._load.host}\r\nCookie: {self._load.cookie}"
        return f"{head}\r\n\r\n".encode()

    def redeem(self, response: OAuthResponse) -> bytes:
        if response.status not in REDIRECTS or not response.location.startswith(self._load.redirect_uri):
            raise ConnectionError(f"no redirect to the client: {response}")
        code = parse_qs(response.location.partition("?")[2])["code"][0]
        return self._post(f"grant_type=authorization_code&code={quote(code)}")

    def refresh(self, response: OAuthResponse) -> bytes:
        return self._post(f"grant_type=refresh_token&refresh_token={tokens_in(response)['refresh_token']}")

    def _post(self, form: str) -> bytes:
        body = f"{form}&redirect_uri={quote(self._load.redirect_uri, safe='')}"
        head = (
            f"POST {self._load.token} HTTP/1.1\r\nHost: {self._load.host}\r\n"
            f"Authorization: Basic {self._load.basic}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return (head + body).encode()


def tokens_in(response: OAuthResponse) -> dict[str, str | int]:
    if response.status != OK:
        raise ConnectionError(f"no tokens: {response}")
    return msgspec.json.decode(response.body, type=dict[str, str | int])


def flow(requests: Requests, run: LoadRun) -> Script:
    run.start()
    while True:
        tokens_in((yield requests.redeem((yield requests.authorize()))))
        if not run.count():
            return


def sign_in(requests: Requests, run: LoadRun, refreshes: list[bytes], connections: int) -> Script:
    """Collect a refresh request for each connection, which is not part of the measurement."""
    refreshes.append(requests.refresh((yield requests.redeem((yield requests.authorize())))))
    if len(refreshes) == connections:
        run.finish()


def refresh(requests: Requests, run: LoadRun, refreshes: list[bytes]) -> Script:
    request = refreshes.pop()
    run.start()
    while True:
        request = requests.refresh((yield request))
        if not run.count():
            return


def collect(requests: Requests, run: LoadRun, redemptions: list[bytes]) -> Script:
    run.start()
    while len(redemptions) < CODES and run.elapsed() < COLLECT_SECONDS:
        redemptions.append(requests.redeem((yield requests.authorize())))
    run.finish()


def redeem(run: LoadRun, redemptions: list[bytes]) -> Script:
    run.start()
    while redemptions:
        tokens_in((yield redemptions.pop()))
        if not run.count():
            return
    run.finish()


class OAuthConnection(asyncio.Protocol):
    def __init__(self, script: Script, run: LoadRun) -> None:
        self._script = script
        self._run = run
        self._response = OAuthResponse()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it
        self._step(lambda: next(self._script))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._run.fail(ConnectionError("the server closed a connection"))

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"location":
            self._response.location = value.decode()

    def on_body(self, body: bytes) -> None:
        self._response.body += body

    def on_message_complete(self) -> None:
        response, self._response = self._response, OAuthResponse()
        response.status = self._parser.get_status_code()
        self._step(lambda: self._script.send(response))

    def _step(self, step: Callable[[], bytes]) -> None:
        try:
            request = step()
        except StopIteration:
            return
        except (ConnectionError, KeyError, msgspec.MsgspecError) as error:
            self._run.fail(error)
            return
        if self._transport is not None:
            self._transport.write(request)


async def run_script(load: OAuthLoad, script: Callable[[LoadRun], Script]) -> LoadResult:
    run = LoadRun(load)
    return await measure(load, run, lambda: OAuthConnection(script(run), run))


async def main(load: OAuthLoad) -> LoadResult:
    requests = Requests(load)
    prepared: list[bytes] = []
    if load.kind == "flow":
        return await run_script(load, lambda run: flow(requests, run))
    if load.kind == "refresh":
        await run_script(load, lambda run: sign_in(requests, run, prepared, load.connections))
        return await run_script(load, lambda run: refresh(requests, run, prepared))
    await run_script(load, lambda run: collect(requests, run, prepared))
    return await run_script(load, lambda run: redeem(run, prepared))


if __name__ == "__main__":
    uvloop.install()
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=OAuthLoad)
    print(msgspec.json.encode(asyncio.run(main(asked))).decode())
