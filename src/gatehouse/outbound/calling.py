"""One call to an address that somebody else chose (R6 "Outbound requests", defaults S-23)."""

import asyncio
from typing import Final

from gatehouse.kernel.addresses import Address, Network
from gatehouse.kernel.urls import WebUrl
from gatehouse.outbound.answers import read_response
from gatehouse.outbound.errors import CallFailed, TooSlow, Unreachable
from gatehouse.outbound.model import CallLimits, OutboundRequest, OutboundResponse
from gatehouse.outbound.network import Connector, Resolver, Streams
from gatehouse.outbound.targets import check_addresses, host_header, parse_target

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
        """The longest one call takes once it has begun."""
        return self._limits.total_seconds

    async def post(self, request: OutboundRequest) -> OutboundResponse:
        """Send a JSON document; whatever status comes back is an answer. Raises CallFailed and its kinds."""
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
            writer.transport.abort()  # nothing is left to say, and nobody is waited for

    async def _connect(self, url: WebUrl) -> Streams:
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                return await self._connect_to_first(await self._addresses(url), url)
        except TimeoutError:
            raise TooSlow(f"{url.host}: connection failed") from None

    async def _addresses(self, url: WebUrl) -> list[Address]:
        """Asked for once: whatever the name leads to a moment later, this is where we go (rebinding)."""
        found = [url.address] if url.address is not None else await self._resolver.resolve(url.host, url.port)
        return check_addresses(url, found, self._allowed)[:MAX_ADDRESSES]

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
        "Content-Type": "application/json",
        "Content-Length": str(len(request.body)),
        "Connection": "close",
        **request.headers,
    }
    if any(FORBIDDEN_IN_HEADERS & set(name + value) for name, value in headers.items()):
        raise ValueError("a request header contains a line break")
    target = url.target if url.target.startswith("/") else f"/{url.target}"
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("ascii") + request.body
