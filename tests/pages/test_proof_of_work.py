"""Proof of work in a real browser, with and without JavaScript."""

import pytest
from playwright.async_api import Browser, Page, expect

from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def require_puzzles(service: RunningService) -> None:
    wanted = {"protection.proof_of_work": "on", "protection.difficulty": 18}
    await service.services.settings_editor.save(wanted, AuditOrigin(actor="test"))


async def fill_in_and_submit(service: RunningService, page: Page, login: str) -> None:
    await page.goto(f"{service.base_url}/register")
    await page.get_by_label("Email").fill(login)
    await page.get_by_label("Display name").fill("Bob")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Create account").click()


async def test_browser_solves_the_puzzle_while_the_form_is_filled_in(service: RunningService, page: Page) -> None:
    await require_puzzles(service)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    for number in range(4):  # one more than a browser without JavaScript may send
        async with page.expect_request(lambda request: request.method == "POST") as posted:
            await fill_in_and_submit(service, page, f"bob{number}@studio.example")
        solution = (await posted.value).post_data or ""
        assert "solution=&" not in solution
        await expect(page.get_by_role("heading")).to_have_text("Check your inbox")
    assert errors == []


async def test_form_works_without_javascript_at_a_stricter_rate(service: RunningService, browser: Browser) -> None:
    await require_puzzles(service)
    context = await browser.new_context(locale="en-GB", java_script_enabled=False)
    page = await context.new_page()
    for number in range(3):
        await fill_in_and_submit(service, page, f"bob{number}@studio.example")
        await expect(page.get_by_role("heading")).to_have_text("Check your inbox")
    await fill_in_and_submit(service, page, "bob3@studio.example")
    await expect(page.get_by_role("alert")).to_contain_text("Turn on JavaScript")
    await context.close()
