"""The client's HTTP transport: kept connections, verified TLS, and timeouts."""

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from gatehouse.client import Request, StandardTransport, Unavailable
from tests.support.processes import free_port
from tests.support.tokens import application_private_key

GET = Request(method="GET", path="/")
HELLO = b'HTTP/1.1 200 OK\r\nETag: "tag"\r\nContent-Length: 5\r\n\r\nhello'
TIMEOUT = 30  # seconds, on a busy machine


class FixedResponseServer:
    """A server that responds to every request with the same bytes, and counts connections."""

    def __init__(self, answer: bytes, *, hangs_up: bool = False) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self._answer = answer
        self._hangs_up = hangs_up

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.requests.append(head)
                writer.write(self._answer)
                await writer.drain()
                if self._hangs_up:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def run_server(other: FixedResponseServer, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = await asyncio.start_server(other, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def transport_to(
    port: int, *, scheme: str = "http", patience: float = TIMEOUT, tls: ssl.SSLContext | None = None
) -> AsyncIterator[StandardTransport]:
    transport = StandardTransport(f"{scheme}://127.0.0.1:{port}", timeout=patience, tls=tls)
    try:
        yield transport
    finally:
        await transport.close()


async def test_a_connection_is_used_again() -> None:
    other = FixedResponseServer(HELLO)
    async with run_server(other) as port, transport_to(port) as transport:
        for _ in range(3):
            reply = await transport.send(GET)
            assert (reply.status, reply.etag, reply.body) == (200, '"tag"', b"hello")
    assert (other.connections, len(other.requests)) == (1, 3)


async def test_a_connection_that_was_given_up_meanwhile_is_replaced() -> None:
    other = FixedResponseServer(HELLO, hangs_up=True)
    async with run_server(other) as port, transport_to(port) as transport:
        for _ in range(3):
            assert (await transport.send(GET)).body == b"hello"
    assert other.connections == 3


async def test_a_redirect_is_not_followed() -> None:
    other = FixedResponseServer(b"HTTP/1.1 307 Elsewhere\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n")
    async with run_server(other) as port, transport_to(port) as transport:
        assert (await transport.send(GET)).status == 307
    assert len(other.requests) == 1


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", HELLO[:-1], b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"])
async def test_half_an_answer_is_none(answer: bytes) -> None:
    async with run_server(FixedResponseServer(answer, hangs_up=True)) as port, transport_to(port) as transport:
        with pytest.raises(Unavailable):
            await transport.send(GET)


async def test_silent_server_is_unavailable_after_the_timeout() -> None:
    async with run_server(FixedResponseServer(b"")) as port, transport_to(port, patience=0.05) as transport:
        with pytest.raises(Unavailable):
            await transport.send(GET)


async def test_closed_port_is_unavailable() -> None:
    async with transport_to(free_port()) as transport:
        with pytest.raises(Unavailable):
            await transport.send(GET)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A self-signed certificate and key for an address."""

    def make(address: str) -> Path:
        key, name = application_private_key(), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
        begin = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
        created = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(begin)
            .not_valid_after(begin.replace(year=2120))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
            .sign(key, SHA256())
        )
        path = tmp_path_factory.mktemp("tls") / "both.pem"
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(private + created.public_bytes(Encoding.PEM))
        return path

    return make


def server_context(pem: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


async def test_a_certificate_of_unknown_origin_is_refused(certificate: Callable[[str], Path]) -> None:
    other, pem = FixedResponseServer(HELLO), certificate("127.0.0.1")
    async with run_server(other, server_context(pem)) as port, transport_to(port, scheme="https") as transport:
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await transport.send(GET)
    assert other.requests == []


async def test_a_certificate_of_a_trusted_authority_is_accepted_for_its_own_name_only(
    certificate: Callable[[str], Path],
) -> None:
    for address, accepted in (("127.0.0.1", True), ("127.0.0.2", False)):
        pem = certificate(address)
        trusting = ssl.create_default_context(cafile=pem)
        async with (
            run_server(FixedResponseServer(HELLO), server_context(pem)) as port,
            transport_to(port, scheme="https", tls=trusting) as transport,
        ):
            if accepted:
                assert (await transport.send(GET)).body == b"hello"
            else:
                with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
                    await transport.send(GET)
