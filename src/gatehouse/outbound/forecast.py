"""Says before a call whether an address would be refused, so that people who enter it learn it at once."""

import asyncio
from typing import Final

from gatehouse.kernel.addresses import Network
from gatehouse.outbound.client import Resolver
from gatehouse.outbound.model import AddressRefused, Unreachable
from gatehouse.outbound.targets import RefusedAddress, find_refused, parse_target

LOOKUP_SECONDS: Final = 2.0  # for the addresses of a name
LOOKUP_THREADS: Final = 2  # what waits longer for one of them is not told


class CallForecast:
    def __init__(self, *, allowed: tuple[Network, ...], resolver: Resolver) -> None:
        """`allowed` are networks that are called although they are not public."""
        self._allowed = allowed
        self._resolver = resolver

    async def refusal(self, text: str) -> RefusedAddress | None:
        """Return why a URL would be refused; None for one that would be called, or of which nothing is known now."""
        try:
            url = parse_target(text)
        except AddressRefused:
            return None  # its own check tells that
        if url.address is not None:
            return find_refused(url, [url.address], self._allowed)
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                addresses = await self._resolver.resolve(url.host, url.port)
        except (TimeoutError, Unreachable):
            return None
        return find_refused(url, addresses, self._allowed)
