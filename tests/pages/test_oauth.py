"""Sign-in to an application in a real browser: the pages, the CSP, and without JavaScript."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Self

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD
from tests.support.oauth import (
    RelyingPartyClient,
    a_public_client,
    an_oidc_client,
    challenge_of,
    query_of,
    success_body,
)
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOGIN = "anna@studio.example"
ARRIVED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<h1>Shop</h1>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A third-party web application on its own port."""

    uri: str
    arrivals: asyncio.Queue[str]

    @classmethod
    async def open(cls, host: str = "127.0.0.1") -> tuple[Self, asyncio.Server]:
        arrivals: asyncio.Queue[str] = asyncio.Queue()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            target = (await reader.readline()).split(b" ")[1].decode()
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            if target.startswith("/callback"):
                arrivals.put_nowait(f"{target}?{body.decode()}" if body else target)
            writer.write(ARRIVED)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, host.strip("[]"), 0)
        port = server.sockets[0].getsockname()[1]
        return cls(uri=f"http://{host}:{port}/callback", arrivals=arrivals), server

    async def answer(self) -> dict[str, str]:
        """The parameters that the browser sent."""
        async with asyncio.timeout(10):
            return query_of(await self.arrivals.get())


@pytest_asyncio.fixture(loop_scope="session")
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


@pytest_asyncio.fixture(loop_scope="session")
async def shop() -> AsyncIterator[Shop]:
    shop, server = await Shop.open()
    async with server:
        yield shop


@pytest_asyncio.fixture(params=["script", "no script"], loop_scope="session")
async def page_with_or_without_script(browser: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    """A page with JavaScript, and one without."""
    context = await browser.new_context(locale="en-GB", java_script_enabled=request.param == "script")
    yield await context.new_page()
    await context.close()


async def a_client(service: RunningService, shop: Shop, **fields: bool) -> RelyingPartyClient:
    client = await an_oidc_client(service, "shop", name="Web shop", redirect_uris=(shop.uri,), **fields)
    return RelyingPartyClient(service=service, client=client.client, secret=client.secret, redirect_uri=shop.uri)


async def open_authorize(client: RelyingPartyClient, page: Page, **changes: str) -> None:
    await page.goto(f"{client.service.base_url}{client.authorize_path(**changes)}")


async def sign_in(page: Page) -> None:
    await page.get_by_label("Email").fill(LOGIN)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()


async def back_in_the_shop(page: Page) -> None:
    await expect(page.get_by_role("heading", name="Shop")).to_be_visible()


def browser_errors(page: Page) -> list[str]:
    """Collect the browser's errors, for example of a blocked resource."""
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


@pytest.mark.both_databases
@pytest.mark.usefixtures("anna")
async def test_signing_in_to_a_third_party_goes_by_consent_and_ends_with_tokens(
    service: RunningService, page_with_or_without_script: Page, shop: Shop
) -> None:
    page, errors = page_with_or_without_script, browser_errors(page_with_or_without_script)
    client = await a_client(service, shop, first_party=False)
    await open_authorize(client, page)
    await expect(page.get_by_text("to continue to Web shop")).to_be_visible()
    await expect(page.get_by_text(shop.uri.split("/")[2])).to_be_visible()
    await sign_in(page)
    await expect(page.get_by_role("heading", name="Allow Web shop?")).to_be_visible()
    await expect(page.get_by_text("your email address")).to_be_visible()
    await page.get_by_role("button", name="Allow", exact=True).click()
    await back_in_the_shop(page)
    arrived = await shop.answer()
    assert (arrived["state"], arrived["iss"]) == ("st", service.base_url)
    tokens = await client.tokens(arrived["code"])
    assert success_body(await client.userinfo(tokens["access_token"]))["email"] == LOGIN
    await open_authorize(client, page)  # consent is stored: nothing is asked
    await back_in_the_shop(page)
    assert "code" in await shop.answer()
    assert not [error for error in errors if "favicon" not in error]


@pytest.mark.usefixtures("anna")
async def test_deny_is_as_large_as_allow_and_tells_the_application(
    service: RunningService, page_with_or_without_script: Page, shop: Shop
) -> None:
    page = page_with_or_without_script
    client = await a_client(service, shop, first_party=False)
    await open_authorize(client, page)
    await sign_in(page)
    for width in (320, 1_200):
        await page.set_viewport_size({"width": width, "height": 800})
        sizes = [await page.get_by_role("button", name=name, exact=True).bounding_box() for name in ("Allow", "Deny")]
        assert sizes[0] is not None
        assert sizes[1] is not None
        assert (sizes[0]["width"], sizes[0]["height"]) == (sizes[1]["width"], sizes[1]["height"])
    await page.get_by_role("button", name="Deny", exact=True).click()
    await back_in_the_shop(page)
    assert (await shop.answer())["error"] == "access_denied"


@pytest.mark.usefixtures("anna")
async def test_form_post_page_posts_by_itself_and_by_its_button(
    service: RunningService, page_with_or_without_script: Page, shop: Shop, request: pytest.FixtureRequest
) -> None:
    page, errors = page_with_or_without_script, browser_errors(page_with_or_without_script)
    client = await a_client(service, shop)
    await open_authorize(client, page, response_mode="form_post")
    await sign_in(page)
    if "no script" in request.node.callspec.id:
        await expect(page.get_by_text(shop.uri.split("/")[2])).to_be_visible()
        await page.get_by_role("button", name="Continue").click()
    await back_in_the_shop(page)
    assert page.url == shop.uri  # nothing is in the address
    arrived = await shop.answer()
    assert (arrived["state"], arrived["iss"]) == ("st", service.base_url)
    assert "id_token" in await client.tokens(arrived["code"])
    assert not [error for error in errors if "favicon" not in error]


@pytest.mark.usefixtures("anna")
async def test_choosing_an_account(service: RunningService, page_with_or_without_script: Page, shop: Shop) -> None:
    page = page_with_or_without_script
    client = await a_client(service, shop)
    await open_authorize(client, page)
    await sign_in(page)
    await back_in_the_shop(page)
    first = await shop.answer()
    await open_authorize(client, page, prompt="select_account")
    await page.get_by_role("button", name="Continue as Anna").click()
    await back_in_the_shop(page)
    second = await shop.answer()
    assert first["code"] != second["code"]
    await open_authorize(client, page, prompt="select_account")
    await page.get_by_role("button", name="Use another account").click()
    await sign_in(page)
    await back_in_the_shop(page)
    assert "code" in await shop.answer()


@pytest.mark.usefixtures("anna")
async def test_a_page_that_was_open_too_long_offers_the_same_request_again(
    service: RunningService, page_with_or_without_script: Page, shop: Shop
) -> None:
    page = page_with_or_without_script
    client = await a_client(service, shop)
    await open_authorize(client, page, state="kept")
    await service.clock.advance(601)
    await sign_in(page)
    await expect(page.get_by_role("heading", name="This page has expired")).to_be_visible()
    await page.get_by_role("button", name="Start again").click()
    await sign_in(page)
    await back_in_the_shop(page)
    assert (await shop.answer())["state"] == "kept"


@pytest.mark.usefixtures("anna")
async def test_a_connected_application_is_withdrawn_on_the_account_page(
    service: RunningService, page_with_or_without_script: Page, shop: Shop
) -> None:
    page = page_with_or_without_script
    client = await a_client(service, shop, first_party=False)
    await open_authorize(client, page)
    await sign_in(page)
    await page.get_by_role("button", name="Allow", exact=True).click()
    await back_in_the_shop(page)
    tokens = await client.tokens((await shop.answer())["code"])
    await page.goto(f"{service.base_url}/account")
    await page.get_by_role("button", name="Web shop").click()
    await expect(page.locator("p.notice[role=status]")).to_have_text("Access withdrawn")
    assert (await client.userinfo(tokens["access_token"])).status_code == 401


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_an_installed_application_is_reached_on_whatever_port_it_got(
    service: RunningService, page: Page, host: str
) -> None:
    shop, server = await Shop.open(host)
    registered = await a_public_client(service, "tool", redirect_uris=(f"http://{host}/callback",))
    client = RelyingPartyClient(service=service, client=registered.client, secret="", redirect_uri=shop.uri)
    async with server:
        await open_authorize(client, page, code_challenge=challenge_of("v" * 43), code_challenge_method="S256")
        await sign_in(page)
        await back_in_the_shop(page)
        code = (await shop.answer())["code"]
    assert "access_token" in await client.tokens(code, code_verifier="v" * 43)


@pytest.mark.usefixtures("anna")
async def test_a_form_posted_from_the_applications_own_page_finds_the_session(
    service: RunningService, page: Page, shop: Shop
) -> None:
    """Browsers do not send SameSite=Lax cookies with a cross-site POST; the GET that follows sends them."""
    client = await a_client(service, shop)
    await open_authorize(client, page)
    await sign_in(page)
    await back_in_the_shop(page)
    await shop.answer()
    fields = "".join(
        f'<input type="hidden" name="{name}" value="{value}">'
        for name, value in client.authorize_fields(prompt="none").items()
    )
    form = f'<form method="post" action="{service.base_url}/proxy/oauth/authorize">{fields}<button>Go</button></form>'
    await page.evaluate("(form) => { document.body.innerHTML = form }", form)
    await page.get_by_role("button", name="Go").click()
    await back_in_the_shop(page)
    assert "code" in await shop.answer()


@pytest.mark.usefixtures("anna")
async def test_an_address_that_is_not_registered_is_shown_beside_those_that_are(
    service: RunningService, page: Page, shop: Shop
) -> None:
    client = await a_client(service, shop, explain_errors=True)
    await open_authorize(client, page, redirect_uri=f"{shop.uri}/x")
    await expect(page.get_by_role("heading", name="Something's wrong with this sign-in link")).to_be_visible()
    await expect(page.locator("mark")).to_have_text("/x")
    assert shop.arrivals.empty()
