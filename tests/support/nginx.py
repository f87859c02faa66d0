"""A real nginx in front of several nodes, with the configuration of deploy/nodes."""

import re
import shutil
import socket
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.capabilities import NGINX, require_program
from tests.support.packaging import NODES
from tests.support.processes import LOOPBACK, WatchedProcess, free_port

HOST: Final = "localhost"
CERTIFICATE_LIFETIME: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NginxProxy:
    base_url: str
    trust: ssl.SSLContext
    process: WatchedProcess

    def node_that_served(self, method: str, path: str, *, status: str = r"\d+") -> str:
        """Return the node that got the first matching request; its log line may come after the response."""
        line = rf'"{method} {re.escape(path)}" {status} (\S+)'
        return self.process.wait_for_line(line, self.process.stdout)[1]


def proxy_address() -> tuple[str, int]:
    """The proxy's base_url and port, which nodes need before it runs."""
    port = free_port()
    return f"https://{HOST}:{port}", port


@contextmanager
def nginx_proxy(port: int, nodes: Sequence[str]) -> Iterator[NginxProxy]:
    """Run nginx before `nodes` (address and port).

    The main file is the deployed one; the included ones are the test's.
    """
    program = require_program(NGINX)
    directory = Path(tempfile.mkdtemp(prefix="gatehouse-nginx-"))
    directory.chmod(0o755)  # nginx's workers run as an unprivileged user and write below it
    try:
        certificate = write_certificate(directory)
        shutil.copy(NODES / "nginx.conf", directory)
        lines = [f"server {node} max_fails=1 fail_timeout=5s;\n" for node in nodes]
        (directory / "nodes.conf").write_text("".join(lines))
        listening = (NODES / "listen.conf").read_text().replace("listen 8443", f"listen {LOOPBACK}:{port}")
        (directory / "listen.conf").write_text(listening.replace("/run/secrets", str(directory)))
        command = [str(program), "-e", "stderr", "-p", str(directory), "-c", str(directory / "nginx.conf")]
        with WatchedProcess(command) as process:
            wait_until_listening(port, process)
            trust = ssl.create_default_context(cadata=certificate)
            yield NginxProxy(base_url=f"https://{HOST}:{port}", trust=trust, process=process)
    finally:
        shutil.rmtree(directory)


def wait_until_listening(port: int, process: WatchedProcess) -> None:
    while True:
        try:
            socket.create_connection((LOOPBACK, port)).close()
        except ConnectionRefusedError:
            assert process.running, process.output()
        else:
            return


def write_certificate(directory: Path, names: Sequence[str] = (HOST,)) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)  # noqa: TID251 - OpenSSL uses the real clock
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CERTIFICATE_LIFETIME)
        .not_valid_after(now + CERTIFICATE_LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .sign(key, SHA256())
    )
    pem = certificate.public_bytes(Encoding.PEM).decode()
    (directory / "tls_certificate").write_text(pem)
    (directory / "tls_key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return pem
