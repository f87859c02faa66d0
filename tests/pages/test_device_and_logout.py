"""Device sign-in and signing out in a real browser, with and without JavaScript."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD
from tests.support.oauth import a_public_client, an_oidc_client, claims_of, success_body
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOGIN = "anna@studio.example"
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
GOODBYE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12\r\nConnection: close\r\n\r\n<h1>Bye</h1>"


@pytest_asyncio.fixture(loop_scope="session")
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


@pytest_asyncio.fixture(params=["script", "no script"], loop_scope="session")
async def page_with_or_without_script(browser: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    context = await browser.new_context(locale="en-GB", java_script_enabled=request.param == "script")
    yield await context.new_page()
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def application_page() -> AsyncIterator[str]:
    """An application's page that people are redirected to after signing out."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(GOODBYE)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/bye"


async def sign_in(page: Page) -> None:
    await page.get_by_label("Email").fill(LOGIN)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()


@pytest.mark.both_databases
async def test_a_code_leads_by_the_sign_in_to_the_question_and_the_device_goes_on(
    service: RunningService, page_with_or_without_script: Page, anna: User
) -> None:
    await a_public_client(service, "tv", name="Sofa TV", redirect_uris=(), device_grant=True)
    request_fields = {"client_id": "tv", "scope": "openid"}
    body = success_body(await service.client.post("/proxy/oauth/device_authorization", data=request_fields))
    await page_with_or_without_script.goto(body["verification_uri_complete"])
    await expect(page_with_or_without_script.get_by_label("Device code")).to_have_value(body["user_code"])
    await page_with_or_without_script.get_by_role("button", name="Continue").click()
    await expect(page_with_or_without_script.get_by_text("Sofa TV")).to_be_visible()
    await sign_in(page_with_or_without_script)
    await expect(page_with_or_without_script.get_by_role("heading", name="Sign in to Sofa TV?")).to_be_visible()
    await expect(page_with_or_without_script.get_by_text(body["user_code"])).to_be_visible()
    boxes = [
        await page_with_or_without_script.get_by_role("button", name=name).bounding_box()
        for name in ("Cancel", "Sign in")
    ]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert (boxes[0]["width"], boxes[0]["height"]) == (boxes[1]["width"], boxes[1]["height"])
    await page_with_or_without_script.get_by_role("button", name="Sign in").click()
    await expect(page_with_or_without_script.get_by_role("heading", name="You're signed in")).to_be_visible()
    fields = {"grant_type": GRANT, "client_id": "tv", "device_code": body["device_code"]}
    tokens = success_body(await service.client.post("/proxy/oauth/token", data=fields))
    assert claims_of(tokens["id_token"])["sub"] == anna.user_id


@pytest.mark.usefixtures("anna")
async def test_signing_out_for_an_application_asks_first_and_leads_there(
    service: RunningService, page_with_or_without_script: Page, application_page: str
) -> None:
    await an_oidc_client(service, "shop", name="Web shop", post_logout_uris=(application_page,))
    await page_with_or_without_script.goto(f"{service.base_url}/sign-in")
    await sign_in(page_with_or_without_script)
    await expect(page_with_or_without_script.get_by_role("heading", name="Anna")).to_be_visible()
    fields = urlencode({"client_id": "shop", "post_logout_redirect_uri": application_page, "state": "s"})
    await page_with_or_without_script.goto(f"{service.base_url}/proxy/oauth/logout?{fields}")
    await expect(page_with_or_without_script.get_by_text("Web shop wants to sign you out")).to_be_visible()
    await page_with_or_without_script.get_by_role("button", name="Sign out", exact=True).click()
    await expect(page_with_or_without_script.get_by_role("heading", name="Bye")).to_be_visible()
    assert page_with_or_without_script.url == f"{application_page}?state=s"
    await page_with_or_without_script.goto(f"{service.base_url}/account")
    await expect(page_with_or_without_script.get_by_role("heading", name="Sign in")).to_be_visible()
