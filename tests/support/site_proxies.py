"""Real nginx and Caddy in front of the service or of a site, with the configurations of the documentation."""

import re
import shutil
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.capabilities import CADDY, NGINX, NGINX_LUA, require_program
from tests.support.find_programs import ROOT
from tests.support.nginx import HOST, nginx_proxy, wait_until_listening, write_certificate
from tests.support.processes import LOOPBACK, WatchedProcess, free_port

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
LUA_MODULES: Final = ("ndk_http_module", "ngx_http_lua_module")
TLS_PLACE: Final = "\n\t# tls"  # where the lines about certificate and address go
GLOBAL_OPTIONS: Final = "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProxy:
    origin: str
    trust: ssl.SSLContext


def guide_block(guide: Path, kind: str) -> str:
    (block,) = re.findall(rf"^```{kind}\n(.*?)^```", guide.read_text(), flags=re.MULTILINE | re.DOTALL)
    return str(block)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedSite:
    """A site behind a proxy; `wiki.example` of the guide."""

    host: str  # and port, as it is registered
    application_id: int
    ports: tuple[int, ...]  # that its server listens on
    upstream: int

    @property
    def origin(self) -> str:
        return f"https://{self.host}"

    @property
    def name(self) -> str:
        return self.host.partition(":")[0]


def nginx_sites(shown: str, *sites: ProxiedSite, service: int) -> AbstractContextManager[ssl.SSLContext]:
    return running_nginx(
        *site_ports(sites),
        names=site_names(sites),
        server="".join(nginx_server(shown, site, service) for site in sites),
    )


def nginx_server(shown: str, site: ProxiedSite, service: int) -> str:
    changes = {
        "listen 443 ssl;": " ".join(f"listen {LOOPBACK}:{port} ssl;" for port in site.ports),
        "server_name wiki.example": f"server_name {site.name}",
        " wiki.example;": f" {site.host};",
        "application_id=50001": f"application_id={site.application_id}",
        "/etc/ssl/wiki.pem": "tls_certificate",
        "/etc/ssl/wiki.key": "tls_key",
        "127.0.0.1:3000": f"127.0.0.1:{site.upstream}",
        "127.0.0.1:8080": f"127.0.0.1:{service}",
    }
    return replace_each(shown, changes)


def caddy_sites(shown: str, *sites: ProxiedSite, service: int) -> AbstractContextManager[ssl.SSLContext]:
    server = "".join(caddy_server(shown, site, service) for site in sites)
    return running_caddy(*site_ports(sites), names=site_names(sites), server=server)


def caddy_server(shown: str, site: ProxiedSite, service: int) -> str:
    addresses = ", ".join(f"https://{site.name}:{port}" for port in site.ports)
    changes = {
        "wiki.example {": f"{addresses} {{{TLS_PLACE}",
        " wiki.example": f" {site.host}",
        "application_id=50001": f"application_id={site.application_id}",
        "127.0.0.1:3000": f"127.0.0.1:{site.upstream}",
        "127.0.0.1:8080": f"127.0.0.1:{service}",
    }
    return replace_each(shown, changes)


def site_ports(sites: Sequence[ProxiedSite]) -> list[int]:
    return [port for site in sites for port in site.ports]


def site_names(sites: Sequence[ProxiedSite]) -> list[str]:
    return [site.name for site in sites]


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
    return as_proxy(port, running_nginx(port, server=replace_each(guide_block(PROXY_GUIDE, "nginx"), changes)))


def caddy_front(port: int, *, service: int) -> AbstractContextManager[SiteProxy]:
    changes = {
        "id.example.org {": f"https://{HOST}:{port} {{{TLS_PLACE}",
        "127.0.0.1:8080": f"127.0.0.1:{service}",
    }
    return as_proxy(port, running_caddy(port, server=replace_each(guide_block(PROXY_GUIDE, "caddyfile"), changes)))


@contextmanager
def nginx_nodes_front(port: int, *, service: int) -> Iterator[SiteProxy]:
    """Run nginx with deploy/nodes/nginx.conf before one node."""
    with nginx_proxy(port, [f"{LOOPBACK}:{service}"]) as proxy:
        yield SiteProxy(origin=proxy.base_url, trust=proxy.trust)


@contextmanager
def as_proxy(port: int, running: AbstractContextManager[ssl.SSLContext]) -> Iterator[SiteProxy]:
    with running as trust:
        yield SiteProxy(origin=f"https://{HOST}:{port}", trust=trust)


@contextmanager
def running_nginx(*ports: int, server: str, names: Sequence[str] = (HOST,)) -> Iterator[ssl.SSLContext]:
    program = require_program(NGINX)
    with proxy_directory(names) as (directory, trust):
        (directory / "nginx.conf").write_text(MAIN_FILE.format(directory=directory, server=server))
        command = [str(program), "-e", "stderr", "-p", str(directory), "-c", str(directory / "nginx.conf")]
        with running_proxy(command, ports):
            yield trust


@contextmanager
def running_nginx_with_lua(server: str, script: str, port: int) -> Iterator[None]:
    """Run nginx without TLS and with a Lua program, which the server includes as `gatehouse.lua`."""
    home, program = require_program(NGINX_LUA), require_program(NGINX)
    libraries, shared = home / "usr/lib/x86_64-linux-gnu", home / "usr/share/lua/5.1"
    with proxy_directory((HOST,)) as (directory, _):
        (directory / "gatehouse.lua").write_text(script)
        modules = [f"load_module {home}/usr/lib/nginx/modules/{name}.so;\n" for name in LUA_MODULES]
        paths = f'lua_package_path "{shared}/?.lua;;"; lua_package_cpath "{libraries}/lua/5.1/?.so;;";'
        main = MAIN_FILE.format(directory=directory, server=f"{paths}\n{server}")
        (directory / "nginx.conf").write_text("".join(modules) + main)
        command = [str(program), "-e", "stderr", "-p", str(directory), "-c", str(directory / "nginx.conf")]
        environment = {"LD_LIBRARY_PATH": f"{libraries}:{home}/lib/x86_64-linux-gnu"}
        with running_proxy(command, [port], environment):
            yield


@contextmanager
def running_caddy(*ports: int, server: str, names: Sequence[str] = (HOST,)) -> Iterator[ssl.SSLContext]:
    program = require_program(CADDY)
    with proxy_directory(names) as (directory, trust):
        tls = f"\n\ttls {directory / 'tls_certificate'} {directory / 'tls_key'}\n\tbind {LOOPBACK}"
        (directory / "Caddyfile").write_text(GLOBAL_OPTIONS + server.replace(TLS_PLACE, tls))
        command = [str(program), "run", "--config", str(directory / "Caddyfile"), "--adapter", "caddyfile"]
        with running_proxy(command, ports, {"HOME": str(directory)}):
            yield trust


@contextmanager
def proxy_directory(names: Sequence[str]) -> Iterator[tuple[Path, ssl.SSLContext]]:
    directory = Path(tempfile.mkdtemp(prefix="gatehouse-site-"))
    directory.chmod(0o755)  # nginx's workers run as an unprivileged user and write below it
    try:
        certificate = write_certificate(directory, names)
        yield directory, ssl.create_default_context(cadata=certificate)
    finally:
        shutil.rmtree(directory)


@contextmanager
def running_proxy(
    command: list[str], ports: Sequence[int], environment: dict[str, str] | None = None
) -> Iterator[None]:
    with WatchedProcess(command, environment=environment) as process:
        for port in ports:
            wait_until_listening(port, process)
        yield


def replace_each(text: str, changes: dict[str, str]) -> str:
    """Replace what differs from the guide; a text that the guide no longer contains is an error."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text
