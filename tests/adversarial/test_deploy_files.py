"""The files of deploy/ and of the guides under attack: real nginx and Caddy, and the memory limits they set."""

import asyncio
import io
import re
import shutil
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx2
import pytest
import yaml
from PIL import Image
from starlette.types import ASGIApp, Receive, Scope, Send

from gatehouse.images.worker import MEMORY_BYTES as IMAGE_MEMORY
from tests.support.browser import PASSWORD, form_to, hidden_fields
from tests.support.capabilities import Capability, require_program
from tests.support.echo import EchoServer, echo_server
from tests.support.game import GET_GSID
from tests.support.nginx import NginxProxy, nginx_proxy
from tests.support.packaging import DEPLOY, NODES, memory_bytes, read_compose, unit_settings
from tests.support.processes import LOOPBACK, Node, free_port, run_command
from tests.support.raw_http import RESPONSE_TIMEOUT, raw_connection
from tests.support.site_proxies import SiteProxy, caddy_front, nginx_front, nginx_nodes_front

OpenFront = Callable[..., AbstractContextManager[SiteProxy]]
PRLIMIT: Final = Capability(
    name="prlimit", find=lambda: (found := shutil.which("prlimit")) and Path(found), optional=True
)
LOGIN: Final = "anna@studio.example"
FORWARDING: Final = {"x-forwarded-host", "x-forwarded-proto", "x-forwarded-uri", "x-forwarded-method", "forwarded"}
SPOOFED: Final = (
    b"X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Host: a.example\r\nX-Forwarded-Proto: http\r\n"
    b"X-Forwarded-Uri: /x\r\nX-Forwarded-Method: PUT\r\nForwarded: for=203.0.113.9\r\n"
)
SMUGGLED: Final = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
HOST: Final = b"Host: localhost\r\n"
CLOSE: Final = b"Connection: close\r\n"
LENGTH: Final = b"Content-Length: %d\r\n" % len(SMUGGLED)
HOSTILE: Final = {  # the first line and headers, then what comes before the smuggled request
    "two lengths": (b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n" + LENGTH, b""),
    "length and chunks": (b"POST /a HTTP/1.1\r\n" + HOST + LENGTH + b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
    "unknown coding": (b"POST /a HTTP/1.1\r\n" + HOST + LENGTH + b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"),
    "blank before a colon": (
        b"POST /a HTTP/1.1\r\n" + HOST + LENGTH + b"Transfer-Encoding : chunked\r\n",
        b"0\r\n\r\n",
    ),
    "bare line feed": (b"GET /a HTTP/1.1\r\n" + HOST + b"X-A: b\nX-Forwarded-For: 203.0.113.9\r\n", b""),
    "line feed in the path": (b"GET /a%0d%0aX-Forwarded-For:%20203.0.113.9 HTTP/1.1\r\n" + HOST + CLOSE, b""),
    "headers of one hop": (b"GET /a HTTP/1.1\r\n" + HOST + b"Connection: close, X-Forwarded-For, Forwarded\r\n", b""),
    "another host": (b"GET http://169.254.169.254/a HTTP/1.1\r\nHost: 169.254.169.254\r\n" + CLOSE, b""),
    "a tunnel": (b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n" + CLOSE, b""),
}


class SeenRequests:
    """What reaches the service: the path and headers of each request."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[tuple[str, str]]]] = []

    def wrap(self, app: ASGIApp) -> ASGIApp:
        async def record(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                headers = [(name.decode().lower(), value.decode()) for name, value in scope["headers"]]
                self.seen.append((scope["path"], headers))
            await app(scope, receive, send)

        return record


@asynccontextmanager
async def service_behind(open_proxy: OpenFront) -> AsyncIterator[tuple[SiteProxy, SeenRequests, EchoServer]]:
    requests = SeenRequests()
    async with echo_server(wrap=requests.wrap) as server:
        with open_proxy(free_port(), service=server.port) as proxy:
            yield proxy, requests, server


async def send_over_tls(proxy: SiteProxy, data: bytes) -> bytes:
    """Send the bytes and read until the proxy closes or stays silent."""
    port = int(proxy.origin.rpartition(":")[2])
    reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=proxy.trust, server_hostname="localhost")
    writer.write(data)
    try:
        async with asyncio.timeout(RESPONSE_TIMEOUT):
            return await reader.read(65_536)
    except (ConnectionError, TimeoutError):
        return b""
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("open_proxy", [nginx_front, caddy_front, nginx_nodes_front])
async def test_dp_01_hostile_bytes_reach_the_service_only_as_requests_that_the_proxy_read(
    open_proxy: OpenFront,
) -> None:
    async with service_behind(open_proxy) as (proxy, requests, _):
        for name, (head, before) in HOSTILE.items():
            requests.seen.clear()
            await send_over_tls(proxy, head + SPOOFED + b"\r\n" + before + SMUGGLED)
            for path, headers in requests.seen:
                given = [value for header, value in headers if header == "x-forwarded-for"]
                assert given == [LOOPBACK], (name, path, "a request that the proxy did not read has no such header")
                assert not FORWARDING & {header for header, _ in headers}, (name, path)
        async with httpx2.AsyncClient(verify=proxy.trust, base_url=proxy.origin, timeout=30) as client:
            assert (await client.get("/echo")).status_code == 200
            assert requests.seen[-1][0] == "/echo"
            refused = await client.get("/large", headers={"Cookie": "a" * 2_000_000})
            assert 400 <= refused.status_code < 500
            assert "/large" not in {path for path, _ in requests.seen}
            assert (await client.get("/echo")).status_code == 200


# -- memory ---------------------------------------------------------------------------------------------


def service_limits() -> dict[str, int]:
    """The memory that each deploy file gives to the service."""
    chart = yaml.safe_load((DEPLOY / "helm" / "gatehouse" / "values.yaml").read_text())
    return {
        "compose": memory_bytes(read_compose()["services"]["gatehouse"]["mem_limit"]),
        "nodes": memory_bytes(read_compose(NODES)["services"]["node1"]["mem_limit"]),
        "systemd": memory_bytes(unit_settings()["MemoryMax"][0]),
        "helm": memory_bytes(chart["resources"]["limits"]["memory"]),
    }


def memory_of(pid: int, field: str) -> int:
    """A size from /proc/PID/status, in bytes."""
    match = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return 0 if match is None else int(match[1]) * 1024


def process_tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in process_tree(int(child)))]


def shared_out_memory(pid: int) -> int:
    """The memory of a process and its children, in which shared pages count once."""
    rollups = (Path(f"/proc/{one}/smaps_rollup").read_text() for one in process_tree(pid))
    return sum(int(size) * 1024 for text in rollups for size in re.findall(r"^Pss:\s+(\d+) kB", text, re.MULTILINE))


async def test_dp_02_service_stays_within_the_memory_of_its_deploy_files(tmp_path: Path) -> None:
    """The limit is set for each process, and the peak of the service leaves room for one image conversion."""
    limit = min(service_limits().values())
    program = (str(require_program(PRLIMIT)), f"--data={limit}", sys.executable, "-m", "gatehouse")
    (tmp_path / "password").write_text(PASSWORD)
    who = ("--login", LOGIN, "--nick", "Anna", "--password-file", tmp_path / "password")
    with Node(data=tmp_path / "data", program=program, environment={"GATEHOUSE__LOG__LEVEL": "error"}) as node:
        run_command("user", "create", *who, "--data", tmp_path / "data", "--dev")
        async with httpx2.AsyncClient(base_url=node.address, timeout=120) as client:
            await asyncio.gather(hold_slow_connections(node.port), send_large_bodies(client), guess_passwords(client))
            await upload_pictures(node.address)
            assert (await client.get("/readyz")).status_code == 200
        peak = memory_of(node.process.pid, "VmHWM")
        assert node.process.running
        assert peak + IMAGE_MEMORY <= limit, f"{peak / 2**20:.0f} MiB of {limit / 2**20:.0f} MiB"


async def hold_slow_connections(port: int, count: int = 200) -> None:
    """Begin requests and send no more, until all have begun."""
    async with AsyncExitStack() as stack:
        for _ in range(count):
            connection = await stack.enter_async_context(raw_connection(port))
            connection.send(b"POST /proxy/api/login HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\nX-A: ")
            connection.send(b"a" * 6_000 + b"\r\n\r\n" + b"[" * 100_000)
            await connection.drain()


async def send_large_bodies(client: httpx2.AsyncClient, count: int = 40) -> None:
    bodies = (
        b"[" * 4_000_000,
        b'{"a":' * 400_000,
        b"a=" + b"%41" * 1_300_000,
        b'{"login":"' + b"a" * 4_000_000 + b'"}',
    )
    paths = ("/proxy/api/login", "/proxy/oauth/token", GET_GSID, "/api/permissions/application")
    kinds = ("application/json", "application/x-www-form-urlencoded")

    async def send(number: int) -> None:
        headers = {"Content-Type": kinds[number % 2]}
        path, body = paths[number % len(paths)], bodies[number // len(paths) % len(bodies)]
        try:
            answer = await client.post(path, content=body, headers=headers)
        except (httpx2.WriteError, httpx2.ReadError, httpx2.RemoteProtocolError):
            return  # refused before the body was read
        assert answer.status_code < 500, answer.text

    for start in range(0, count, 20):
        await asyncio.gather(*map(send, range(start, start + 20)))


async def guess_passwords(client: httpx2.AsyncClient, count: int = 16) -> None:
    guesses = (client.post("/proxy/api/login", json={"login": LOGIN, "password": f"{n}"}) for n in range(count))
    assert {answer.status_code for answer in await asyncio.gather(*guesses)} <= {200, 429, 503}


async def upload_pictures(address: str) -> None:
    picture = io.BytesIO()
    Image.new("RGBA", (4_000, 3_000)).save(picture, "WEBP")
    async with httpx2.AsyncClient(base_url=address, timeout=120, follow_redirects=True) as browser:
        page = await browser.get("/sign-in")
        fields = {**hidden_fields(form_to("/sign-in", page.text)), "login": LOGIN, "password": PASSWORD}
        page = await browser.post("/sign-in", data=fields)
        csrf = hidden_fields(form_to("/account/picture", (await browser.get("/account")).text))
        files = {"picture": ("a.webp", picture.getvalue(), "image/webp")}
        uploads = (browser.post("/account/picture", data=csrf, files=files) for _ in range(4))
        assert 500 not in {answer.status_code for answer in await asyncio.gather(*uploads)}


def test_dp_02_memory_limits_of_the_service_agree() -> None:
    assert len(set(service_limits().values())) == 1, service_limits()


def test_dp_02_nginx_has_memory_for_all_its_connections() -> None:
    """Measured with some connections, each with the largest headers and never finished, then counted for all."""
    configuration = (NODES / "nginx.conf").read_text()
    workers, connections = (
        int(re.search(rf"^ *{name} (\d+);", configuration, re.MULTILINE)[1])  # type: ignore[index]
        for name in ("worker_processes", "worker_connections")
    )
    container = read_compose(NODES)["services"]["proxy"]
    files = memory_bytes(re.search(r"size=(\w+)", container["tmpfs"][0])[1])  # type: ignore[index]
    port, warm, opened = free_port(), 100, 400
    with nginx_proxy(port, [f"{LOOPBACK}:1"]) as proxy, ExitStack() as stack:
        hold_large_headers(stack, proxy, port, warm)
        before = shared_out_memory(proxy.process.pid)
        hold_large_headers(stack, proxy, port, opened - warm)
        after = shared_out_memory(proxy.process.pid)
    each = (after - before) / (opened - warm)
    needed = after + each * (workers * connections - opened) + files
    said = f"{each / 1024:.0f} KiB each, {needed / 2**20:.0f} MiB of {container['mem_limit']}"

    assert needed <= memory_bytes(container["mem_limit"]), said


def hold_large_headers(stack: ExitStack, proxy: NginxProxy, port: int, count: int) -> None:
    """Begin requests with as many headers as nginx buffers; return when it has read them."""
    headers = b"".join(b"X-%d: %b\r\n" % (number, b"a" * 7_900) for number in range(3))
    for _ in range(count):
        connect(stack, proxy, port).sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + headers)
    for _ in range(4):  # answered after what came before them
        connection = connect(stack, proxy, port)
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b" 502 " in connection.recv(100)


def connect(stack: ExitStack, proxy: NginxProxy, port: int) -> ssl.SSLSocket:
    plain = socket.create_connection((LOOPBACK, port), timeout=30)
    return stack.enter_context(proxy.trust.wrap_socket(plain, server_hostname="localhost"))
