"""People and settings in a real browser: no errors, no overflow, accessible."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, ViewportSize, expect

from gatehouse.audit.model import AuditOrigin
from tests.pages.test_look import listen
from tests.support.axe import LOOK_RULES, axe_violations
from tests.support.console import ADA, OLGA, PIA, apply_document, sign_in_to_console
from tests.support.service import RunningService, running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

PERSON = f"/console/people/{OLGA}"
SCREENS = (
    *(
        "/console/people",
        "/console/people/new",
        "/console/people/import",
        PERSON,
        f"{PERSON}/permissions?application_id=1",
        f"{PERSON}/access",
    ),
    *(f"/console/people/{ADA}/sessions", f"{PERSON}/methods", f"{PERSON}/activity", f"{PERSON}/act/erase"),
    *(f"{PERSON}/email", f"{PERSON}/methods/remove?factor=email", "/console/settings", "/console/settings/email"),
    *("/console/settings/sign-in", "/console/settings/health", "/console/settings/configuration"),
    *("/console/settings/keys", "/console/settings/keys/rotate?purpose=tokens&alg=RS256"),
)

DESKTOP: Final = ViewportSize(width=1_280, height=800)
PHONE: Final = ViewportSize(width=360, height=800)
FITS: Final = "document.documentElement.scrollWidth <= innerWidth"


@pytest_asyncio.fixture(loop_scope="session")
async def studio(migrated_sqlite_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    """Only one database: this tests the browser."""
    async with running_service(migrated_sqlite_url, tmp_path) as running:
        await apply_document(running)
        olga = await running.services.storage.accounts.user(OLGA)
        await running.services.email_codes.enable(olga, origin=AuditOrigin(actor=OLGA))
        yield running


async def test_axe_finds_nothing_and_nothing_sticks_out_on_any_screen(studio: RunningService, page: Page) -> None:
    await sign_in_to_console(studio, page, ADA, "/console/people")
    errors = listen(page)
    for screen in SCREENS:
        await page.emulate_media(color_scheme="light", reduced_motion="reduce")
        await page.set_viewport_size(DESKTOP)
        await page.goto(f"{studio.base_url}{screen}")
        assert await axe_violations(page) == [], screen
        assert await page.evaluate(FITS), screen
        await page.emulate_media(color_scheme="dark")
        await page.set_viewport_size(PHONE)
        assert await axe_violations(page, LOOK_RULES) == [], screen
        assert await page.evaluate(FITS), screen
    assert errors == []


async def test_a_search_narrows_the_list_while_it_is_typed(studio: RunningService, page: Page) -> None:
    await sign_in_to_console(studio, page, ADA, "/console/people")
    await expect(page.get_by_role("link", name="Pia")).to_be_visible()
    await page.keyboard.press("/")  # focuses the search
    await page.keyboard.type("olg")
    await expect(page.get_by_role("link", name="Pia")).to_have_count(0)
    await expect(page.get_by_role("link", name="Olga")).to_be_visible()
    await page.get_by_label("Any part of a name, email or ID").fill("")
    await page.get_by_label("Show", exact=True).select_option("administrators")
    await expect(page.get_by_role("link", name="Olga")).to_have_count(0)
    assert page.url.endswith("among=administrators&tag=&provider=&seen=any&application_id=&role=")
    assert PIA not in await page.content()
