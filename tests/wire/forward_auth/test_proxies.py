"""The documented nginx and Caddy configurations serve Gatehouse, and protect a site (R9)."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import connect

from gatehouse.tokens.verifier import parse_jws
from tests.support.browser import PASSWORD, HttpBrowser, form_to, hidden_fields
from tests.support.builders import ORIGIN
from tests.support.console import apply_document
from tests.support.echo import echo_server
from tests.support.game import GET_GSID, OTHER_ADDRESS, RESULT, wait_until_held
from tests.support.guides import programs_for
from tests.support.nginx import HOST
from tests.support.processes import LOOPBACK, free_port
from tests.support.raw_http import RawConnection, RawResponse
from tests.support.service import RunningService, running_service
from tests.support.site_proxies import (
    ProxiedSite,
    SiteProxy,
    caddy_front,
    caddy_sites,
    nginx_front,
    nginx_nodes_front,
    nginx_sites,
)
from tests.support.sites import (
    OUTSIDER,
    READER,
    SHOP_APPLICATION,
    SHOP_SITE,
    SITES,
    TRUSTED,
    VISITOR,
    WIKI_APPLICATION,
    WIKI_SITE,
    SiteBrowser,
    forwarding_headers,
)
from tests.support.websockets import PATH, receive_json

OpenFront = Callable[..., AbstractContextManager[SiteProxy]]
OpenSites = Callable[..., AbstractContextManager[ssl.SSLContext]]
SPOOFED = {"X-Auth-User": OUTSIDER, "X-Auth-Roles": "admin", "X-Auth-Token": "x", "X-Auth-Email": "a@b.example"}
LOOKALIKES = ("X_Auth_User", "X-Auth_User", "X_Auth-User", "x_auth_roles", "X-Auth_Token")  # HTTP_X_AUTH_… in CGI
REQUEST_ID = re.compile(r"[0-9a-f]{16,}")
PAGE = {"Accept": "text/html"}
FORWARDED = {"X-Forwarded-For": VISITOR, "Forwarded": f"for={OUTSIDER}"}


def guide_nginx(*sites: ProxiedSite, service: int) -> AbstractContextManager[ssl.SSLContext]:
    return nginx_sites(*programs_for(__file__, "protect-a-site", "nginx"), *sites, service=service)


def guide_caddy(*sites: ProxiedSite, service: int) -> AbstractContextManager[ssl.SSLContext]:
    return caddy_sites(*programs_for(__file__, "protect-a-site", "caddyfile"), *sites, service=service)


@pytest.fixture
async def service(installed_sqlite_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_sqlite_url, tmp_path, environment=TRUSTED) as running:
        await apply_document(running, SITES)
        yield running


@pytest.mark.parametrize("open_proxy", [guide_nginx, guide_caddy])
async def test_fa_01_real_proxy_lets_only_people_with_the_permission_through(
    open_proxy: OpenSites, service: RunningService
) -> None:
    async with echo_server() as site:
        port = free_port()
        proxy = ProxiedSite(host=f"{HOST}:{port}", application_id=WIKI_APPLICATION, ports=(port,), upstream=site.port)
        with open_proxy(proxy, service=service.client.base_url.port) as trust:
            await set_site(service, proxy.origin, "page.read")
            async with httpx2.AsyncClient(verify=trust, timeout=10) as browser:
                await sign_in(browser, f"{proxy.origin}/wiki?page=7")
                seen = await open_site(browser, f"{proxy.origin}/wiki?page=7", **SPOOFED)
                assert {name: seen[name] for name in ("x-auth-user", "x-auth-email", "x-auth-roles")} == {
                    "x-auth-user": [READER],
                    "x-auth-email": ["rea@studio.example"],
                    "x-auth-roles": ["reader"],
                }
                (token,) = seen["x-auth-token"]
                assert parse_jws(token).payload["aud"] == proxy.origin

                reached = len(site.echo.started)
                await set_site(service, proxy.origin, "page.edit")
                denied = await browser.get(f"{proxy.origin}/wiki", headers={**PAGE, **SPOOFED})
                assert (denied.status_code, "No access" in denied.text) == (403, True)
                await service.services.accounts.sessions.sign_out_everywhere(READER, ORIGIN)
                ended = await browser.get(f"{proxy.origin}/wiki", headers={**PAGE, **SPOOFED})
                assert (ended.status_code, ended.headers["location"]) == (
                    302,
                    f"{proxy.origin}/.gatehouse/sign-in?to=%2Fwiki",
                )
                assert len(site.echo.started) == reached


async def test_site_of_the_guide_is_registered_by_its_file(installed_sqlite_url: str, tmp_path: Path) -> None:
    async with running_service(installed_sqlite_url, tmp_path, environment=TRUSTED) as running:
        ask = "/proxy/auth", forwarding_headers(WIKI_SITE)
        assert (await running.client.get(ask[0], headers=ask[1])).status_code == 403
        await apply_document(running, *programs_for(__file__, "protect-a-site", "yaml"))
        answer = await running.client.get(ask[0], headers=ask[1])
        assert (answer.status_code, "location" in answer.headers) == (401, True)


@dataclass(slots=True, kw_only=True)
class TwoSites:
    """Two sites behind one proxy: each server has a port of its own, and both share one."""

    open: ProxiedSite  # for everyone who signs in
    closed: ProxiedSite
    reached: dict[str, list[str]]  # by host: the heads of the requests that reached the site
    trust: ssl.SSLContext

    @property
    def shared_port(self) -> int:
        return self.open.ports[1]


@asynccontextmanager
async def two_sites(
    open_proxy: OpenSites, service: RunningService, opened: tuple[str, int], closed: tuple[str, int]
) -> AsyncIterator[TwoSites]:
    shared = free_port()
    async with heads_of_requests() as (one_port, one), heads_of_requests() as (other_port, other):
        sites = [
            ProxiedSite(
                host=origin.removeprefix("https://"),
                application_id=application_id,
                ports=(free_port(), shared),
                upstream=upstream,
            )
            for (origin, application_id), upstream in ((opened, one_port), (closed, other_port))
        ]
        with open_proxy(*sites, service=service.client.base_url.port) as trust:
            reached = {sites[0].host: one, sites[1].host: other}
            yield TwoSites(open=sites[0], closed=sites[1], reached=reached, trust=trust)


@asynccontextmanager
async def heads_of_requests() -> AsyncIterator[tuple[int, list[str]]]:
    """A site that keeps each request as it came; our own server would drop names with an underscore."""
    heads: list[str] = []

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(keep, LOOPBACK) as server:
        yield server.sockets[0].getsockname()[1], heads


def site_cookie(visitor: SiteBrowser, site: ProxiedSite) -> str:
    return f"Cookie: __Host-gh_site={visitor.cookies[site.origin]['__Host-gh_site']}"


async def request_over_tls(sites: TwoSites, port: int, name: str, *lines: str) -> RawResponse:
    """Send exactly these lines; `name` is the server name that TLS asks for."""
    connection = RawConnection(*await asyncio.open_connection(LOOPBACK, port, ssl=sites.trust, server_hostname=name))
    connection.send("\r\n".join([*lines, "", ""]).encode())
    try:
        return await connection.read_response()
    finally:
        await connection.close()


async def attack_with_the_name_of_another_site(sites: TwoSites, cookie: str) -> None:
    """Send the open site's name and cookie to the closed site's server, in every way a request can name a host."""
    own, shared = sites.closed.ports
    opened, closed = sites.open.host, sites.closed.host
    for port in (own, shared):
        for name in (sites.open.name, sites.closed.name):
            for target, host in (("/", opened), (f"https://{closed}/", opened), (f"https://{opened}/", closed)):
                await request_over_tls(sites, port, name, f"GET {target} HTTP/1.1", f"Host: {host}", cookie)
    assert sites.reached[closed] == []


async def assert_opens(sites: TwoSites, site: ProxiedSite, cookie: str) -> None:
    """The same way in works on the site itself, and the port that a client writes behind its name does not matter."""
    for host in (site.host, f"{site.name}:1"):
        before = len(sites.reached[site.host])
        lines = ("GET / HTTP/1.1", f"Host: {host}", cookie)
        answer = await request_over_tls(sites, site.ports[0], site.name, *lines)
        assert (answer.status, len(sites.reached[site.host])) == (200, before + 1)


@pytest.mark.parametrize("open_proxy", [guide_nginx, guide_caddy])
async def test_fa_11_cookie_of_one_site_does_not_open_a_site_of_another_application(
    open_proxy: OpenSites, service: RunningService
) -> None:
    shop, wiki = (SHOP_SITE, SHOP_APPLICATION), (WIKI_SITE, WIKI_APPLICATION)
    async with two_sites(open_proxy, service, shop, wiki) as sites, two_visitors(service) as (otto, rea):
        await otto.sign_in("otto@studio.example", SHOP_SITE)
        await attack_with_the_name_of_another_site(sites, site_cookie(otto, sites.open))
        await assert_opens(sites, sites.open, site_cookie(otto, sites.open))
        await rea.sign_in("rea@studio.example", WIKI_SITE)
        await assert_opens(sites, sites.closed, site_cookie(rea, sites.closed))


@pytest.mark.parametrize("open_proxy", [guide_nginx, guide_caddy])
async def test_fa_11_cookie_of_one_site_does_not_open_a_site_with_another_permission(
    open_proxy: OpenSites, service: RunningService
) -> None:
    """Both belong to one application, so that only the literal host name tells them apart."""
    docs, wiki = ("https://docs.example", WIKI_APPLICATION), (WIKI_SITE, WIKI_APPLICATION)
    await apply_document(
        service,
        f'applications: [{{application_id: {WIKI_APPLICATION}, protected_sites: {{"{docs[0]}": page.read, '
        f'"{WIKI_SITE}": page.edit}}}}]',
    )
    async with two_sites(open_proxy, service, docs, wiki) as sites, two_visitors(service) as (rea, _):
        await rea.sign_in("rea@studio.example", docs[0])
        await attack_with_the_name_of_another_site(sites, site_cookie(rea, sites.open))
        await assert_opens(sites, sites.open, site_cookie(rea, sites.open))


@pytest.mark.parametrize("open_proxy", [guide_nginx, guide_caddy])
async def test_fa_01_headers_that_programs_read_as_ours_do_not_reach_the_site(
    open_proxy: OpenSites, service: RunningService
) -> None:
    shop, wiki = (SHOP_SITE, SHOP_APPLICATION), (WIKI_SITE, WIKI_APPLICATION)
    async with two_sites(open_proxy, service, shop, wiki) as sites, two_visitors(service) as (otto, _):
        await otto.sign_in("otto@studio.example", SHOP_SITE)
        lines = [f"{name}: {READER}" for name in LOOKALIKES]
        cookie, site = site_cookie(otto, sites.open), sites.open
        await request_over_tls(
            sites, site.ports[0], site.name, "GET / HTTP/1.1", f"Host: {site.host}", cookie, *lines
        )
        (head,) = sites.reached[site.host]
        received = [line.partition(":") for line in head.splitlines()[1:]]
        users = [value for name, _, value in received if name.lower().replace("_", "-") == "x-auth-user"]
        assert users == [f" {OUTSIDER}"]
        assert READER not in head


@asynccontextmanager
async def two_visitors(service: RunningService) -> AsyncIterator[list[SiteBrowser]]:
    visitors = [SiteBrowser(service=service, browser=HttpBrowser(service)) for _ in range(2)]
    yield visitors
    for visitor in visitors:
        await visitor.browser.client.aclose()


@pytest.mark.parametrize("open_proxy", [nginx_front, caddy_front, nginx_nodes_front])
async def test_fa_12_client_is_no_trusted_proxy_through_the_proxy_before_the_service(
    open_proxy: OpenFront, service: RunningService
) -> None:
    """It learns neither which sites are registered nor who is signed in there, and starts no sign-in."""
    async with two_visitors(service) as (rea, _):
        await rea.sign_in("rea@studio.example", WIKI_SITE)
        cookie = f"__Host-gh_site={rea.cookies[WIKI_SITE]['__Host-gh_site']}"
    with open_proxy(free_port(), service=service.client.base_url.port) as proxy:
        async with httpx2.AsyncClient(verify=proxy.trust, base_url=proxy.origin, timeout=30) as stranger:
            for path in ("/proxy/auth", "/proxy/auth?redirect=1", "/.gatehouse/sign-in", "/.gatehouse/denied"):
                answers = [
                    await stranger.get(path, headers=[*headers, ("Cookie", cookie), ("Accept", "text/html")])
                    for origin in (WIKI_SITE, "https://unknown.example")
                    for headers in header_spellings(forwarding_headers(origin))
                ]
                assert {answer.status_code for answer in answers} == {403}, path
                seen = {REQUEST_ID.sub("", answer.text) for answer in answers}
                assert len(seen) == 1, "known and unknown sites look alike"
                assert not any(answer.headers.get("x-auth-user") for answer in answers)


def header_spellings(headers: Mapping[str, str]) -> Iterator[list[tuple[str, str]]]:
    """The headers as they are, twice, and with underscores."""
    plain = [(name, value) for name, value in headers.items() if name != "X-Forwarded-For"]
    yield plain
    yield [*plain, *plain]
    yield [(name.replace("-", "_"), value) for name, value in plain]
    yield [(name.lower(), value) for name, value in plain]


@pytest.mark.parametrize("open_proxy", [nginx_front, caddy_front])
async def test_documented_proxy_carries_a_game_sign_in_and_the_address_of_the_client(
    open_proxy: OpenFront, service: RunningService
) -> None:
    with open_proxy(free_port(), service=service.client.base_url.port) as proxy:
        transport = httpx2.AsyncHTTPTransport(local_address=OTHER_ADDRESS, verify=proxy.trust)
        async with httpx2.AsyncClient(
            transport=transport, base_url=proxy.origin, headers=FORWARDED, timeout=30
        ) as game:
            registered = await game.post(GET_GSID)
            gsid = registered.json()["gsid"]
            socket = proxy.origin.replace("https", "wss") + PATH + gsid
            async with connect(socket, ssl=proxy.trust, proxy=None, local_addr=(OTHER_ADDRESS, 0)) as events:
                polling = asyncio.create_task(game.post(RESULT, json={"gsid": gsid}))
                await wait_until_held(service)
                browser = HttpBrowser(service)
                await browser.sign_in("rea@studio.example")
                page = await browser.get(f"/?gsid={gsid}")
                while page.status_code == 303:
                    page = await browser.follow()
                assert f"<bdi>{OTHER_ADDRESS}</bdi>" in page.text
                await browser.post("/sign-in/confirm", decision="confirm")
                assert (await polling).json()["user_id"] == READER
                while (await receive_json(events))["event"] != "confirmed":
                    pass
                await browser.client.aclose()


async def set_site(service: RunningService, origin: str, rule: str) -> None:
    await apply_document(
        service, f'applications: [{{application_id: {WIKI_APPLICATION}, protected_sites: {{"{origin}": {rule}}}}}]'
    )


async def sign_in(browser: httpx2.AsyncClient, address: str) -> None:
    """Open the site as a person does, until its page is there."""
    page = await browser.get(address, headers=PAGE, follow_redirects=True)
    assert page.url.path == "/sign-in", page.text
    fields = {**hidden_fields(form_to("/sign-in", page.text)), "login": "rea@studio.example", "password": PASSWORD}
    there = await browser.post(page.url.copy_with(query=None), data=fields, follow_redirects=True)
    assert (there.status_code, str(there.url)) == (200, address)


async def open_site(browser: httpx2.AsyncClient, address: str, **headers: str) -> dict[str, list[str]]:
    """Open a page of the site; return the headers that reached it."""
    page = await browser.get(address, headers={**PAGE, **headers})
    assert page.status_code == 200, page.text
    seen: dict[str, list[str]] = {}
    for name, value in page.json()["headers"]:
        seen.setdefault(name, []).append(value)
    return seen
