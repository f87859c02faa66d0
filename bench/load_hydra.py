"""A load generator in a process of its own for OAuth at Ory Hydra, which has no sign-in pages.

    python -m bench.load_hydra

Reads a HydraLoad as JSON from stdin and prints a LoadResult as JSON, for the operations of bench/load_oauth.py. Hydra
redirects every authorize request to a login page and then to a consent page, also with an active session and
`skip_consent`. Both pages are left out: the client accepts at the admin API, as the pages would, and goes on with the
address in the response.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast
from urllib.parse import parse_qs, quote

import httptools
import msgspec
import uvloop
from bench.load import LOOPBACK, OK, TIMEOUT, LoadResult, LoadRun
from bench.load_oauth import CODES, COLLECT_SECONDS, REDIRECTS, OAuthLoad, OAuthResponse, Requests, tokens_in

SESSION_COOKIE: Final = "ory_hydra_session_dev"


class HydraLoad(OAuthLoad, frozen=True, kw_only=True):
    admin_port: int
    accept: dict[str, dict[str, Any]]  # what the pages would send: by login and consent


class HydraResponse(OAuthResponse, kw_only=True):
    cookies: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it


class HydraConnection(asyncio.Protocol):
    """One keep-alive connection, one request at a time."""

    def __init__(self) -> None:
        self._response = HydraResponse()
        self._pending: asyncio.Future[HydraResponse] | None = None
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)

    async def send(self, request: bytes) -> HydraResponse:
        if self._transport is None:
            raise ConnectionError("not connected")
        self._pending = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._pending

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _: Exception | None) -> None:
        if self._pending is not None and not self._pending.done():
            self._pending.set_exception(ConnectionError("the server closed a connection"))

    def on_header(self, name: bytes, value: bytes) -> None:
        lower = name.lower()
        if lower == b"location":
            self._response.location = value.decode()
        elif lower == b"set-cookie":
            cookie, _, content = value.decode().partition(";")[0].partition("=")
            self._response.cookies[cookie] = content

    def on_body(self, body: bytes) -> None:
        self._response.body += body

    def on_message_complete(self) -> None:
        response, self._response = self._response, HydraResponse()
        response.status = self._parser.get_status_code()
        if self._pending is not None and not self._pending.done():
            self._pending.set_result(response)


class HydraClient:
    """One client with a connection to each of the two ports of Hydra."""

    def __init__(self, load: HydraLoad, requests: Requests, public: HydraConnection, admin: HydraConnection) -> None:
        self.requests = requests
        self.public = public
        self.cookies: dict[str, str] = {}  # of the last authorize
        self._load = load
        self._admin = admin

    async def authorize(self) -> HydraResponse:
        """The redirect to the client."""
        self.cookies = {}
        response = await self._get(self.requests.authorize_path())
        for page in ("login", "consent"):
            response = await self._get(await self._accept(page, response))
        return response

    async def redeem(self) -> HydraResponse:
        response = await self.public.send(self.requests.redeem(await self.authorize()))
        tokens_in(response)
        return response

    async def _get(self, path: str) -> HydraResponse:
        cookie = "; ".join([self._load.cookie, *(f"{name}={value}" for name, value in self.cookies.items())])
        head = f"GET {path} HTTP/1.1\r\nHost: {self._load.host}\r\nCookie: {cookie.removeprefix('; ')}\r\n\r\n"
        response = await self.public.send(head.encode())
        self.cookies |= response.cookies
        return response

    async def _accept(self, page: str, response: HydraResponse) -> str:
        """The path and query that the page would redirect to."""
        challenge = parse_qs(response.location.partition("?")[2]).get(f"{page}_challenge")
        if response.status not in REDIRECTS or challenge is None:
            raise ConnectionError(f"no redirect to the {page} page: {response}")
        body = msgspec.json.encode(self._load.accept[page])
        head = (
            f"PUT /admin/oauth2/auth/requests/{page}/accept?{page}_challenge={quote(challenge[0])} HTTP/1.1\r\n"
            f"Host: {LOOPBACK}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        accepted = await self._admin.send(head.encode() + body)
        if accepted.status != OK:
            raise ConnectionError(f"{page} was not accepted: {accepted}")
        target = msgspec.json.decode(accepted.body, type=dict[str, str])["redirect_to"]
        return target.removeprefix(f"http://{self._load.host}")


Script = Callable[[HydraClient, LoadRun], Coroutine[Any, Any, None]]


def flow(connections: int) -> Script:
    """Count after the first flow of every connection: those are slow, because all begin together."""
    warm = 0

    async def script(client: HydraClient, run: LoadRun) -> None:
        nonlocal warm
        while warm < connections:
            await client.redeem()
            warm += 1
        run.start()
        await client.redeem()
        while run.count():
            await client.redeem()

    return script


def refresh(connections: int) -> Script:
    barrier = asyncio.Barrier(connections)  # sign-ins are not part of the measurement

    async def script(client: HydraClient, run: LoadRun) -> None:
        response: OAuthResponse = await client.redeem()
        await barrier.wait()
        run.start()
        response = await client.public.send(client.requests.refresh(response))
        while run.count():
            response = await client.public.send(client.requests.refresh(response))

    return script


def collect(redemptions: list[bytes]) -> Script:
    async def script(client: HydraClient, run: LoadRun) -> None:
        while len(redemptions) < CODES and run.elapsed() < COLLECT_SECONDS:
            redemptions.append(client.requests.redeem(await client.authorize()))
        run.finish()

    return script


def redeem(redemptions: list[bytes]) -> Script:
    async def script(client: HydraClient, run: LoadRun) -> None:
        while redemptions and not run.done.done():
            tokens_in(await client.public.send(redemptions.pop()))
            run.count()
        run.finish()

    return script


async def open_client(load: HydraLoad, requests: Requests) -> HydraClient:
    loop = asyncio.get_running_loop()
    _, public = await loop.create_connection(HydraConnection, LOOPBACK, load.port)
    _, admin = await loop.create_connection(HydraConnection, LOOPBACK, load.admin_port)
    return HydraClient(load, requests, public, admin)


async def sign_in(load: HydraLoad) -> str:
    """The session cookie of a new session."""
    client = await open_client(load, Requests(load))
    await client.redeem()
    return f"{SESSION_COOKIE}={client.cookies[SESSION_COOKIE]}"


async def access_token(load: HydraLoad) -> str:
    client = await open_client(load, Requests(load))
    return str(tokens_in(await client.redeem())["access_token"])


async def measure(load: HydraLoad, script: Script, *, started: bool = True) -> LoadResult:
    requests = Requests(load)
    clients = [await open_client(load, requests) for _ in range(load.connections)]
    run = LoadRun(load)
    if started:
        run.start()
    async with asyncio.timeout(load.seconds + TIMEOUT), asyncio.TaskGroup() as tasks:
        for client in clients:
            tasks.create_task(script(client, run))
    return await run.done


async def main(load: HydraLoad) -> LoadResult:
    if load.kind == "flow":
        return await measure(load, flow(load.connections), started=False)
    if load.kind == "refresh":
        return await measure(load, refresh(load.connections), started=False)
    redemptions: list[bytes] = []
    await measure(load, collect(redemptions))
    return await measure(load, redeem(redemptions))


if __name__ == "__main__":
    uvloop.install()
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=HydraLoad)
    print(msgspec.json.encode(asyncio.run(main(asked))).decode())
