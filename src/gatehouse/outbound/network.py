"""Names become addresses, and addresses connections: what tests put something else in the place of."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Protocol, TypeAlias

from gatehouse.kernel.addresses import Address
from gatehouse.outbound.errors import Unreachable

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Resolver(Protocol):
    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """Every address the name has now. Raises Unreachable."""


class Connector(Protocol):
    async def connect(self, address: Address, port: int, *, name: str, encrypted: bool) -> Streams:
        """Connect to exactly this address; it must prove the name when encrypted. Raises Unreachable."""


class SystemResolver:
    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Unreachable(f"{host}: {error.strerror or 'no such name'}") from None
        return list(dict.fromkeys(ip_address(str(place[0]).partition("%")[0]) for *_, place in found))


class TcpConnector:
    """Straight to the address: no proxy of the environment is asked."""

    def __init__(self, tls_context: ssl.SSLContext | None = None) -> None:
        """`trust`: whose certificates are believed; else those the system believes."""
        self._tls_context = tls_context

    async def connect(self, address: Address, port: int, *, name: str, encrypted: bool) -> Streams:
        try:
            if not encrypted:
                return await asyncio.open_connection(str(address), port)
            return await asyncio.open_connection(str(address), port, ssl=self._tls(), server_hostname=name)
        except (OSError, ssl.SSLError, ssl.CertificateError) as error:
            raise Unreachable(f"{name} at {address}: {error}") from None

    def _tls(self) -> ssl.SSLContext:
        if self._tls_context is None:
            self._tls_context = ssl.create_default_context()
            self._tls_context.minimum_version = ssl.TLSVersion.TLSv1_2
        return self._tls_context
