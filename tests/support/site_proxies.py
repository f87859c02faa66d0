"""Real nginx and Caddy in front of the service or of a site, with the configurations of the documentation."""

import re
import shutil
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.capabilities import CADDY, NGINX, require_program
from tests.support.find_programs import ROOT
from tests.support.nginx import HOST, wait_until_listening, write_certificate
from tests.support.processes import LOOPBACK, WatchedProcess, free_port

SITE_GUIDE: Final = ROOT / "docs" / "guides" / "protect-a-site.md"
PROXY_GUIDE: Final = ROOT / "docs" / "operations" / "behind-a-proxy.md"
MAIN_FILE: Final = """\
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    {server}
}}
"""
GLOBAL_OPTIONS: Final = "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProxy:
    origin: str
    trust: ssl.SSLContext


def guide_block(guide: Path, kind: str) -> str:
    (block,) = re.findall(rf"^```{kind}\n(.*?)^```", guide.read_text(), flags=re.MULTILINE | re.DOTALL)
    return str(block)


def nginx_site(port: int, *, site: int, service: int) -> AbstractContextManager[SiteProxy]:
    changes = {
        "listen 443": f"listen {LOOPBACK}:{port}",
        "server_name wiki.example": f"server_name {HOST}",
        "/etc/ssl/wiki.pem": "tls_certificate",
        "/etc/ssl/wiki.key": "tls_key",
        "127.0.0.1:3000": f"127.0.0.1:{site}",
        "127.0.0.1:8080": f"127.0.0.1:{service}",
    }
    return running_nginx(port, replace_each(guide_block(SITE_GUIDE, "nginx"), changes))


def nginx_front(port: int, *, service: int) -> AbstractContextManager[SiteProxy]:
    changes = {
        "listen 443": f"listen {LOOPBACK}:{port}",
        "listen 80": f"listen {LOOPBACK}:{free_port()}",
        "server_name id.example.org": f"server_name {HOST}",
        "/etc/ssl/id.example.org.pem": "tls_certificate",
        "/etc/ssl/id.example.org.key": "tls_key",
        "/var/log/nginx/gatehouse.log": "/dev/stdout",
        "127.0.0.1:8080": f"127.0.0.1:{service}",
    }
    return running_nginx(port, replace_each(guide_block(PROXY_GUIDE, "nginx"), changes))


@contextmanager
def running_nginx(port: int, server: str) -> Iterator[SiteProxy]:
    program = require_program(NGINX)
    with proxy_directory() as (directory, trust):
        (directory / "nginx.conf").write_text(MAIN_FILE.format(directory=directory, server=server))
        command = [str(program), "-e", "stderr", "-p", str(directory), "-c", str(directory / "nginx.conf")]
        with running_proxy(command, port, trust) as proxy:
            yield proxy


def caddy_site(port: int, *, site: int, service: int) -> AbstractContextManager[SiteProxy]:
    changes = {
        "wiki.example {": "{address} {",
        "127.0.0.1:3000": f"127.0.0.1:{site}",
        "127.0.0.1:8080": f"127.0.0.1:{service}",
    }
    return running_caddy(port, replace_each(guide_block(SITE_GUIDE, "caddyfile"), changes))


def caddy_front(port: int, *, service: int) -> AbstractContextManager[SiteProxy]:
    changes = {"id.example.org {": "{address} {", "127.0.0.1:8080": f"127.0.0.1:{service}"}
    return running_caddy(port, replace_each(guide_block(PROXY_GUIDE, "caddyfile"), changes))


@contextmanager
def running_caddy(port: int, server: str) -> Iterator[SiteProxy]:
    program = require_program(CADDY)
    with proxy_directory() as (directory, trust):
        keys = f"{directory / 'tls_certificate'} {directory / 'tls_key'}"
        address = f"https://{HOST}:{port} {{\n\ttls {keys}\n\tbind {LOOPBACK}"
        (directory / "Caddyfile").write_text(GLOBAL_OPTIONS + server.replace("{address} {", address))
        command = [str(program), "run", "--config", str(directory / "Caddyfile"), "--adapter", "caddyfile"]
        with running_proxy(command, port, trust, {"HOME": str(directory)}) as proxy:
            yield proxy


@contextmanager
def proxy_directory() -> Iterator[tuple[Path, ssl.SSLContext]]:
    directory = Path(tempfile.mkdtemp(prefix="gatehouse-site-"))
    directory.chmod(0o755)  # nginx's workers run as an unprivileged user and write below it
    try:
        certificate = write_certificate(directory)
        yield directory, ssl.create_default_context(cadata=certificate)
    finally:
        shutil.rmtree(directory)


@contextmanager
def running_proxy(
    command: list[str], port: int, trust: ssl.SSLContext, environment: dict[str, str] | None = None
) -> Iterator[SiteProxy]:
    with WatchedProcess(command, environment=environment) as process:
        wait_until_listening(port, process)
        yield SiteProxy(origin=f"https://{HOST}:{port}", trust=trust)


def replace_each(text: str, changes: dict[str, str]) -> str:
    """Replace what differs from the guide; a text that the guide no longer contains is an error."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text
