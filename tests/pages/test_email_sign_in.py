"""Sign-in and registration by email in a real browser."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from gatehouse.audit.model import AuditOrigin
from gatehouse.mail.model import Message
from tests.support.browser import LOGIN, PASSWORD
from tests.support.mailbox import new_messages
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")

ORIGIN = AuditOrigin(actor="test")


@pytest_asyncio.fixture(params=["script", "no script"], loop_scope="session")
async def page(browser: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    """A page with JavaScript, and one without."""
    context = await browser.new_context(locale="en-GB", java_script_enabled=request.param == "script")
    yield await context.new_page()
    await context.close()


async def the_message(service: RunningService) -> Message:
    (message,) = await new_messages(service)
    return message


def code_in(message: Message) -> str:
    found = re.search(r"\d{4} \d{4}", message.text)
    assert found is not None, message.text
    return found.group()


async def test_code_and_link_sign_in_and_a_link_elsewhere_explains(
    service: RunningService, browser: Browser, page: Page
) -> None:
    await service.services.settings_editor.save({"accounts.email_sign_in": True}, ORIGIN)
    await service.services.accounts.administration.create(login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN)
    await page.goto(f"{service.base_url}/sign-in")
    await page.get_by_label("Email or user name").fill(LOGIN)
    await page.get_by_role("button", name="Email me a sign-in link").click()
    await expect(page.get_by_role("heading", name="Check your inbox")).to_be_visible()
    message = await the_message(service)
    link = re.search(r"https?://\S+/sign-in/link\S+", message.text)
    assert link is not None

    elsewhere = await browser.new_page()
    await elsewhere.goto(link.group())
    await expect(elsewhere.get_by_role("heading", name="Go back to the browser")).to_be_visible()
    await elsewhere.close()

    await page.get_by_label("Code").fill("0000 0000")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("Wrong code")
    await page.get_by_label("Code").fill(code_in(message))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1, name="Anna")).to_be_visible()

    await page.locator("header").get_by_role("button", name="Sign out").click()
    await page.goto(f"{service.base_url}/sign-in")
    await page.get_by_label("Email or user name").fill(LOGIN)
    await page.get_by_role("button", name="Email me a sign-in link").click()
    again = re.search(r"https?://\S+/sign-in/link\S+", (await the_message(service)).text)
    assert again is not None
    await page.goto(again.group())
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1, name="Anna")).to_be_visible()


async def test_person_registers_without_a_password(service: RunningService, page: Page) -> None:
    wanted = {"email_sign_in": True, "password_optional": True, "registration": True}
    await service.services.settings_editor.save({f"accounts.{name}": on for name, on in wanted.items()}, ORIGIN)
    await page.goto(f"{service.base_url}/register")
    await page.get_by_label("Email").fill(LOGIN)
    await page.get_by_label("Display name").fill("Anna")
    await page.get_by_role("button", name="Create account").click()
    await page.get_by_label("Code").fill(code_in(await the_message(service)))
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("heading", name="Add a passkey")).to_be_visible()
    user = await service.services.storage.accounts.user_by_login(LOGIN)
    assert user is not None
    assert (user.password_hash, user.email_verified) == (None, True)
