"""One call to an address that somebody else chose (R6 "Outbound requests", defaults S-23)."""

import asyncio
from typing import Final

from gatehouse.kernel.addresses import Address, Network
from gatehouse.kernel.urls import WebUrl
from gatehouse.outbound.answers import read_answer
from gatehouse.outbound.errors import CallFailed, TooSlow, Unreachable
from gatehouse.outbound.model import Answer, Limits, Posting
from gatehouse.outbound.network import Connector, Resolver, Streams
from gatehouse.outbound.targets import authority, checked, target_of

ADDRESSES_TRIED: Final = 3
LINE_ENDS: Final = frozenset("\r\n\0")


class Outbound:
    def __init__(
        self,
        *,
        allowed: tuple[Network, ...],
        resolver: Resolver,
        connector: Connector,
        limits: Limits | None = None,
    ) -> None:
        """`allowed`: networks that may be called although they are not public, also by http (outbound.allow)."""
        self._allowed = allowed
        self._resolver = resolver
        self._connector = connector
        self._limits = limits or Limits()
        self._places = asyncio.Semaphore(self._limits.at_once)

    @property
    def patience(self) -> float:
        """The longest one call takes once it has begun."""
        return self._limits.total_seconds

    async def post(self, posting: Posting) -> Answer:
        """Send a JSON document; whatever status comes back is an answer. Raises CallFailed and its kinds."""
        url = target_of(posting.url)
        async with self._places:
            try:
                async with asyncio.timeout(self._limits.total_seconds):
                    return await self._exchange(url, request_of(url, posting))
            except TimeoutError:
                raise TooSlow(f"{url.host}: {self._limits.total_seconds:g} s") from None
            except (OSError, EOFError) as error:
                raise Unreachable(f"{url.host}: {error}") from None

    async def _exchange(self, url: WebUrl, request: bytes) -> Answer:
        reader, writer = await self._connected(url)
        try:
            writer.write(request)
            await writer.drain()
            return await read_answer(reader, self._limits)
        finally:
            writer.transport.abort()  # nothing is left to say, and nobody is waited for

    async def _connected(self, url: WebUrl) -> Streams:
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                return await self._first_of(await self._addresses(url), url)
        except TimeoutError:
            raise TooSlow(f"{url.host}: connection failed") from None

    async def _addresses(self, url: WebUrl) -> list[Address]:
        """Asked for once: whatever the name leads to a moment later, this is where we go (rebinding)."""
        found = [url.address] if url.address is not None else await self._resolver.addresses(url.host, url.port)
        return checked(url, found, self._allowed)[:ADDRESSES_TRIED]

    async def _first_of(self, addresses: list[Address], url: WebUrl) -> Streams:
        trouble: CallFailed = Unreachable(url.host)
        for address in addresses:
            try:
                return await self._connector.connect(
                    address, url.port, name=url.host, encrypted=url.scheme == "https"
                )
            except Unreachable as error:
                trouble = error
        raise trouble


def request_of(url: WebUrl, posting: Posting) -> bytes:
    headers = {
        "Host": authority(url),
        "User-Agent": "gatehouse",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "Content-Length": str(len(posting.body)),
        "Connection": "close",
        **posting.headers,
    }
    if any(LINE_ENDS & set(name + value) for name, value in headers.items()):
        raise ValueError("a request header contains a line break")
    target = url.target if url.target.startswith("/") else f"/{url.target}"
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("ascii") + posting.body
