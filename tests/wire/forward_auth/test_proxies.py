"""The documented nginx and Caddy configurations serve Gatehouse, and protect a site (R9)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
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
from tests.support.processes import free_port
from tests.support.service import RunningService, running_service
from tests.support.site_proxies import SiteProxy, caddy_front, caddy_site, nginx_front, nginx_site
from tests.support.sites import OUTSIDER, READER, SITES, TRUSTED, VISITOR, WIKI_APPLICATION
from tests.support.websockets import PATH, receive_json

OpenProxy = Callable[..., AbstractContextManager[SiteProxy]]
SPOOFED = {"X-Auth-User": OUTSIDER, "X-Auth-Roles": "admin", "X-Auth-Token": "x", "X-Auth-Email": "a@b.example"}
PAGE = {"Accept": "text/html"}
FORWARDED = {"X-Forwarded-For": VISITOR, "Forwarded": f"for={OUTSIDER}"}


@pytest.fixture
async def service(installed_sqlite_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_sqlite_url, tmp_path, environment=TRUSTED) as running:
        await apply_document(running, SITES)
        yield running


@pytest.mark.parametrize("open_proxy", [nginx_site, caddy_site])
async def test_fa_01_real_proxy_lets_only_people_with_the_permission_through(
    open_proxy: OpenProxy, service: RunningService
) -> None:
    async with echo_server() as site:
        ports = {"site": site.port, "service": service.client.base_url.port}
        with open_proxy(free_port(), **ports) as proxy:
            await set_site(service, proxy.origin, "page.read")
            async with httpx2.AsyncClient(verify=proxy.trust, timeout=10) as browser:
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
                await service.services.sessions.sign_out_everywhere(READER, ORIGIN)
                ended = await browser.get(f"{proxy.origin}/wiki", headers={**PAGE, **SPOOFED})
                assert (ended.status_code, ended.headers["location"]) == (
                    302,
                    f"{proxy.origin}/.gatehouse/sign-in?to=%2Fwiki",
                )
                assert len(site.echo.started) == reached


@pytest.mark.parametrize("open_proxy", [nginx_front, caddy_front])
async def test_documented_proxy_carries_a_game_sign_in_and_the_address_of_the_client(
    open_proxy: OpenProxy, service: RunningService
) -> None:
    with open_proxy(free_port(), service=service.client.base_url.port) as proxy:
        transport = httpx2.AsyncHTTPTransport(local_address=OTHER_ADDRESS, verify=proxy.trust)
        async with httpx2.AsyncClient(transport=transport, base_url=proxy.origin, headers=FORWARDED) as game:
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
