"""Servers of third parties on loopback or in memory, and a resolver with answers the test chooses."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gatehouse.kernel.addresses import Address
from gatehouse.outbound.client import Streams
from gatehouse.outbound.model import Unreachable
from tests.support.processes import LOOPBACK

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


def http_response(body: bytes = b"{}", status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    line: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True, kw_only=True)
class StubServer:
    """A server with one response; `say` builds it from the request, and may wait."""

    respond: Callable[[ReceivedRequest], bytes] = lambda _: NO_CONTENT
    pause: Callable[[], asyncio.Future[object]] | None = None
    received: list[ReceivedRequest] = field(default_factory=list)
    connections: int = 0
    open_connections: int = 0
    max_open_connections: int = 0
    port: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections += 1
        self.max_open_connections = max(self.max_open_connections, self.open_connections)
        try:
            request = await read_request(reader)
            self.received.append(request)
            if self.pause is not None:
                await self.pause()
            writer.write(self.respond(request))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open_connections -= 1
            writer.close()


async def read_request(reader: asyncio.StreamReader) -> ReceivedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:-2])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(line=head[0], headers=headers, body=body)


@asynccontextmanager
async def run_stub_server(outsider: StubServer, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[StubServer]:
    server = await asyncio.start_server(outsider.handle, LOOPBACK, 0, ssl=tls)
    outsider.port = server.sockets[0].getsockname()[1]
    try:
        yield outsider
    finally:
        server.close()


class StubResolver:
    """A resolver whose lookups return the given answers in turn, and then the last one forever."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(rounds) for name, rounds in answers.items()}
        self.lookups: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[Address]:  # noqa: ARG002
        self.lookups.append(host)
        rounds = self._answers.get(host)
        if rounds is None:
            raise Unreachable(host)
        resolved = rounds.pop(0) if len(rounds) > 1 else rounds[0]
        return [ip_address(text) for text in resolved]


class StubConnector:
    """A connector that opens no connection: it records the address and responds from memory."""

    def __init__(self, says: bytes = NO_CONTENT, *, dead: Sequence[str] = ()) -> None:
        self._says = says
        self._dead = dead
        self.connected: list[tuple[str, int, str, bool]] = []
        self.sent: list[bytes] = []

    async def connect(self, address: Address, port: int, *, name: str, encrypted: bool) -> Streams:
        self.connected.append((str(address), port, name, encrypted))
        if str(address) in self._dead:
            raise Unreachable(str(address))
        reader = asyncio.StreamReader()
        reader.feed_data(self._says)
        reader.feed_eof()
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(reader)
        return reader, asyncio.StreamWriter(StubTransport(self.sent), protocol, reader, loop)


class StubTransport(asyncio.Transport):
    def __init__(self, sent: list[bytes]) -> None:
        super().__init__()
        self._sent = sent
        self._is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._sent.append(bytes(data))

    def is_closing(self) -> bool:
        return self._is_closed

    def abort(self) -> None:
        self._is_closed = True

    def close(self) -> None:
        self.abort()


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsContexts:
    server: ssl.SSLContext
    client: ssl.SSLContext  # trusts only that server's certificate


def tls_contexts_for(directory: Path, name: str) -> TlsContexts:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "outside.test")])
    now = datetime.now(UTC)  # noqa: TID251 - OpenSSL uses the real clock
    certificate = (
        x509.CertificateBuilder(subject_name=subject, issuer_name=subject, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = directory / f"{name}.pem"
    file.write_bytes(private + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return TlsContexts(server=server, client=ssl.create_default_context(cadata=pem.decode()))
