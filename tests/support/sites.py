"""A protected site on the running service, and a browser that opens it through a proxy the test plays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Final
from urllib.parse import parse_qsl

import httpx2

from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.service import RunningService

WIKI_SITE: Final = "https://wiki.example"
SHOP_SITE: Final = "https://shop.example:8443"
WIKI_APPLICATION: Final = 50_001
SHOP_APPLICATION: Final = 50_002
READER: Final = "1000000001"
OUTSIDER: Final = "1000000002"
TRUSTED: Final = {"GATEHOUSE__SERVER__TRUSTED_PROXIES": "127.0.0.1/32"}
VISITOR: Final = "203.0.113.5"
SITES: Final = f"""
users:
  - {{login: rea@studio.example, nick: "Réa, %", password: "{PASSWORD}", user_id: "{READER}", email_verified: true}}
  - {{login: otto@studio.example, nick: Otto, password: "{PASSWORD}", user_id: "{OUTSIDER}"}}
applications:
  - application_id: {WIKI_APPLICATION}
    name: Wiki
    protected_sites: {{"{WIKI_SITE}": page.read}}
    schema:
      private_data:
        page:
          read: {{value: false, protected: false, description: Read pages}}
          edit: {{value: false, protected: false, description: Change pages}}
    roles:
      reader: {{meta: {{private_data: {{page: {{read: {{value: true}}}}}}}}}}
    users: {{"{READER}": {{roles: [reader]}}}}
  - application_id: {SHOP_APPLICATION}
    name: Shop
    protected_sites: {{"{SHOP_SITE}": store.open}}
    schema: {{private_data: {{store: {{open: {{value: true, protected: false}}}}}}}}
"""


def forwarding_headers(origin: str, path: str = "/", **more: str) -> dict[str, str]:
    """What a proxy sends with the request that it asks about."""
    scheme, _, host = origin.partition("://")
    return {
        "X-Forwarded-Host": host,
        "X-Forwarded-Proto": scheme,
        "X-Forwarded-Uri": path,
        "X-Forwarded-For": VISITOR,
        **more,
    }


@dataclass(slots=True, kw_only=True)
class SiteBrowser:
    """One browser: its cookies on the service, and those on each site."""

    service: RunningService
    browser: HttpBrowser
    cookies: dict[str, dict[str, str]] = field(default_factory=dict)  # by site

    async def ask(self, origin: str = WIKI_SITE, query: str = "", **headers: str) -> httpx2.Response:
        """Ask /proxy/auth about a request of this browser, in the name of the site's application."""
        if "application_id=" not in query:
            application_id = SHOP_APPLICATION if origin == SHOP_SITE else WIKI_APPLICATION
            query = f"{query or '?'}&application_id={application_id}"
        return await self.ask_unnamed(origin, query, **headers)

    async def ask_unnamed(self, origin: str = WIKI_SITE, query: str = "", **headers: str) -> httpx2.Response:
        """Ask with no more than this query."""
        return await self.proxied(f"/proxy/auth{query}", origin, **headers)

    async def proxied(self, path: str, origin: str = WIKI_SITE, **headers: str) -> httpx2.Response:
        """Send a request as the proxy of that site does, and keep the cookies it sets there."""
        there = self.cookies.setdefault(origin, {})
        sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in there.items())} if there else {}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        async with httpx2.AsyncClient(base_url=self.service.client.base_url, verify=False) as plain:
            response = await plain.get(path, headers={**forwarding_headers(origin), **sent, **given})
        for line in response.headers.get_list("set-cookie"):
            there.update({name: morsel.value for name, morsel in SimpleCookie(line).items()})
        return response

    async def begin(self, origin: str = WIKI_SITE, path: str = "/page?id=7") -> str:
        """Start the sign-in on the site; return the address on the service."""
        started = await self.proxied(f"/.gatehouse/sign-in?{httpx2.QueryParams({'to': path})}", origin)
        assert started.status_code == 303, started.text
        location = str(started.headers["location"])
        assert location.startswith(f"{self.service.base_url}/proxy/auth/sign-in?"), location
        return location.removeprefix(self.service.base_url)

    async def sign_in_here(self, address: str, login: str) -> str:
        """Walk from the sign-in address through the form; return where the browser goes then."""
        page = await self.browser.get(address)
        assert page.status_code == 303, page.text
        if page.headers["location"].startswith("/sign-in"):
            await self.browser.follow()
            page = await self.browser.post("/sign-in", login=login, password=PASSWORD, stay="1")
        assert page.status_code == 303, page.text
        return str(page.headers["location"])

    async def sign_in(self, login: str = "rea@studio.example", origin: str = WIKI_SITE) -> httpx2.Response:
        """Sign in to the site; return the last answer, which sets its session."""
        back = await self.sign_in_here(await self.begin(origin), login)
        assert back.startswith(f"{origin}/.gatehouse/return?code="), back
        return await self.proxied(back.removeprefix(origin), origin)


def query_fields(address: str) -> Mapping[str, str]:
    return dict(parse_qsl(address.partition("?")[2]))
