"""The setup link in a real browser."""

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, expect

from gatehouse.audit.model import AuditOrigin
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def setup_link(service: RunningService) -> str:
    secret = await service.services.accounts.setup.new_link(AuditOrigin(actor="test"))
    return f"{service.base_url}/setup?token={secret}"


async def fill_in(page: Page) -> None:
    await page.get_by_label("Email").fill("anna@studio.example")
    await page.get_by_label("Display name").fill("Anna")
    await page.get_by_label("Password", exact=False).first.fill("correct horse battery")


@pytest.mark.both_databases
async def test_the_first_administrator_is_made_by_mouse_and_keyboard(service: RunningService, page: Page) -> None:
    errors: list[ConsoleMessage] = []
    page.on("console", lambda message: errors.append(message) if message.type == "error" else None)
    link = await setup_link(service)
    await page.goto(link)
    await expect(page.get_by_label("Email")).to_be_focused()
    await fill_in(page)
    await page.get_by_role("button", name="Create administrator").click()
    await expect(page.get_by_role("heading", name="Welcome, Anna")).to_be_visible()
    assert await service.services.accounts.setup.is_closed()
    assert [message.text for message in errors] == []
    dead = await page.goto(link)
    assert dead is not None
    assert dead.status == 403
    await expect(page.get_by_text("This setup link is invalid")).to_be_visible()


async def test_setup_works_without_javascript_on_a_phone(service: RunningService, browser: Browser) -> None:
    context = await browser.new_context(java_script_enabled=False, viewport={"width": 360, "height": 740})
    page = await context.new_page()
    await page.goto(await setup_link(service))
    await fill_in(page)
    await page.get_by_role("button", name="Create administrator").click()
    await expect(page.get_by_role("heading", name="Welcome, Anna")).to_be_visible()
    await context.close()
