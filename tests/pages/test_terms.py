"""The page of the terms in a real browser, with and without JavaScript, in English and German."""

import pytest
from playwright.async_api import Browser, expect

from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD
from tests.support.game import register_game
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")
ORIGIN = AuditOrigin(actor="test")


@pytest.mark.parametrize(("script", "locale"), [(True, "en-GB"), (False, "de-DE")])
async def test_player_accepts_the_terms_before_the_game(
    service: RunningService, browser: Browser, *, script: bool, locale: str
) -> None:
    document = {"title": "Rules", "url": "https://studio.example/rules", "version": "1", "minimum_age": 16}
    wanted = {f"terms.rules.{name}": value for name, value in document.items()}
    await service.services.settings_editor.save(wanted, ORIGIN)
    await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN, more={"lang": locale[:2]}
    )
    game = await register_game(service, factor="device")
    context = await browser.new_context(locale=locale, java_script_enabled=script)
    page = await context.new_page()
    await page.goto(f"{service.base_url}/?gsid={game.gsid}")
    await page.locator("[name=login]").fill(LOGIN)
    await page.locator("[name=password]").fill(PASSWORD)
    await page.locator("[name=password]").press("Enter")
    title = "Review the terms" if script else "Bedingungen prüfen"
    await expect(page.get_by_role("heading")).to_have_text(title)
    await expect(page.get_by_role("link", name="Rules")).to_have_attribute("href", "https://studio.example/rules")
    await page.get_by_label("Date of birth" if script else "Geburtsdatum").fill("2001-05-31")
    await page.locator("[value=accept]").click()
    await expect(page.locator("[value=confirm]").first).to_be_visible()
    await page.locator("[value=confirm]").first.click()
    assert (await game.poll()).json()["status"] == "OK"
    await context.close()
