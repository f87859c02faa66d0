"""One call to an address that an administrator or client chose: resolve, check, connect, send (R6, defaults S-23)."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import cache, partial
from ipaddress import ip_address
from typing import Final, Protocol, TypeAlias

from gatehouse.kernel.addresses import Address, Network
from gatehouse.kernel.web_urls import WebUrl
from gatehouse.outbound.model import CallFailed, CallLimits, OutboundRequest, OutboundResponse, TooSlow, Unreachable
from gatehouse.outbound.response_parser import read_response
from gatehouse.outbound.targets import check_addresses, host_header, parse_target

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Resolver(Protocol):
    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """Every address the name has now. Raises Unreachable."""


class Connector(Protocol):
    async def connect(self, address: Address, port: int, *, name: str, encrypted: bool) -> Streams:
        """Connect to exactly this address; it must prove the name when encrypted. Raises Unreachable."""


class SystemResolver:
    def __init__(self, pool: Executor | None = None) -> None:
        """`pool`: its threads wait for the answers; by default those that the whole process shares."""
        self._pool = pool

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        try:
            places = await asyncio.get_running_loop().run_in_executor(self._pool, look_up)
        except OSError as error:
            raise Unreachable(f"{host}: {error.strerror or 'no such name'}") from None
        return list(dict.fromkeys(ip_address(str(place[0]).partition("%")[0]) for *_, place in places))


class TcpConnector:
    """Connects directly: no proxy of the environment is used."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, ca_file: str = "") -> None:
        """`tls`: the trusted certificates; by default those of the system and of `ca_file`."""
        self._tls = tls
        self._ca_file = ca_file

    async def connect(self, address: Address, port: int, *, name: str, encrypted: bool) -> Streams:
        try:
            if not encrypted:
                return await asyncio.open_connection(str(address), port)
            tls = self._tls or await asyncio.to_thread(trusted_authorities, self._ca_file)
            return await asyncio.open_connection(str(address), port, ssl=tls, server_hostname=name)
        except (OSError, ssl.SSLError, ssl.CertificateError) as error:
            raise Unreachable(f"{name} at {address}: {error}") from None


@cache
def trusted_authorities(ca_file: str) -> ssl.SSLContext:
    """Trust the authorities of the system and of the file; reading them takes a hundredth of a second or more."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file:
        context.load_verify_locations(ca_file)
    return context


# One call to an address that an administrator or client chose (R6 "Outbound requests", defaults S-23).


MAX_ADDRESSES: Final = 3
FORBIDDEN_IN_HEADERS: Final = frozenset("\r\n\0")


class OutboundClient:
    def __init__(
        self,
        *,
        allowed: tuple[Network, ...],
        resolver: Resolver,
        connector: Connector,
        limits: CallLimits | None = None,
    ) -> None:
        """`allowed`: networks that may be called although they are not public, also by http (outbound.allow)."""
        self._allowed = allowed
        self._resolver = resolver
        self._connector = connector
        self._limits = limits or CallLimits()
        self._semaphore = asyncio.Semaphore(self._limits.max_concurrent)

    @property
    def timeout(self) -> float:
        """The maximum duration of one call."""
        return self._limits.total_seconds

    async def get(self, url: str, *, accept: str = "application/json") -> OutboundResponse:
        """Request a document and return the response, whatever its status. Raises CallFailed, as `post`."""
        return await self._call(OutboundRequest(url=url, body=None, headers={"Accept": accept}))

    async def post(self, request: OutboundRequest) -> OutboundResponse:
        """Send a document and return the response, whatever its status. Raises CallFailed and its subclasses."""
        return await self._call(request)

    async def _call(self, request: OutboundRequest) -> OutboundResponse:
        url = parse_target(request.url)
        async with self._semaphore:
            try:
                async with asyncio.timeout(self._limits.total_seconds):
                    return await self._send(url, request_bytes(url, request))
            except TimeoutError:
                raise TooSlow(f"{url.host}: {self._limits.total_seconds:g} s") from None
            except (OSError, EOFError) as error:
                raise Unreachable(f"{url.host}: {error}") from None

    async def _send(self, url: WebUrl, request: bytes) -> OutboundResponse:
        reader, writer = await self._connect(url)
        try:
            writer.write(request)
            await writer.drain()
            return await read_response(reader, self._limits)
        finally:
            writer.transport.abort()  # nothing is left to send or read

    async def _connect(self, url: WebUrl) -> Streams:
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                return await self._connect_to_first(await self._addresses(url), url)
        except TimeoutError:
            raise TooSlow(f"{url.host}: connection failed") from None

    async def _addresses(self, url: WebUrl) -> list[Address]:
        """Resolve the name once and check its addresses: a later answer is not used (rebinding)."""
        addresses = [url.address] if url.address is not None else await self._resolver.resolve(url.host, url.port)
        return check_addresses(url, addresses, self._allowed)[:MAX_ADDRESSES]

    async def _connect_to_first(self, addresses: list[Address], url: WebUrl) -> Streams:
        trouble: CallFailed = Unreachable(url.host)
        for address in addresses:
            try:
                return await self._connector.connect(
                    address, url.port, name=url.host, encrypted=url.scheme == "https"
                )
            except Unreachable as error:
                trouble = error
        raise trouble


def request_bytes(url: WebUrl, request: OutboundRequest) -> bytes:
    headers = {
        "Host": host_header(url),
        "User-Agent": "gatehouse",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        **({} if request.body is None else json_headers(request.body)),
        "Connection": "close",
        **request.headers,
    }
    if any(FORBIDDEN_IN_HEADERS & set(name + value) for name, value in headers.items()):
        raise ValueError("a request header contains a line break")
    target = url.target if url.target.startswith("/") else f"/{url.target}"
    method = request.method or ("GET" if request.body is None else "POST")
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("ascii") + (request.body or b"")


def json_headers(body: bytes) -> dict[str, str]:
    return {"Content-Type": "application/json", "Content-Length": str(len(body))}
