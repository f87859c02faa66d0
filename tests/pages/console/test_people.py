"""People and settings in a real browser: no errors, no overflow, accessible."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, ViewportSize, expect

from gatehouse.audit.model import AuditOrigin
from tests.pages.test_look import listen
from tests.support.axe import LOOK_RULES, axe_violations, load_axe_with_every_page
from tests.support.console import ADA, OLGA, PIA, apply_document, sign_in_to_console
from tests.support.service import RunningService, running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

PERSON = f"/console/people/{OLGA}"
# What the tests of every screen and of the phone do not open: forms and confirmations.
SCREENS = (
    *(
        "/console/people/new",
        f"{PERSON}/act/erase",
        f"{PERSON}/email",
        f"{PERSON}/edit",
        f"{PERSON}/methods/remove?factor=email",
    ),
    "/console/settings/keys/rotate?purpose=tokens&alg=RS256",
    "/console/projects/mind_games/members/invite",
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
        await running.services.factors.email_codes.enable(olga, origin=AuditOrigin(actor=OLGA))
        yield running


async def test_axe_finds_nothing_and_nothing_sticks_out_on_any_screen(studio: RunningService, page: Page) -> None:
    await sign_in_to_console(studio, page, ADA, "/console/people")
    await load_axe_with_every_page(page)
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
    await expect(page.get_by_label("Select all")).to_be_visible()
    await page.keyboard.press("/")  # focuses the search
    await page.keyboard.type("olg")
    await expect(page.get_by_role("link", name="Pia")).to_have_count(0)
    await expect(page.get_by_role("link", name="Olga")).to_be_visible()
    await page.get_by_label("Any part of a name, email or ID").fill("")
    await expect(page.get_by_role("link", name="Pia")).to_be_visible()
    await check_that_one_box_selects_all_rows(page, rows=5)
    await page.get_by_label("Show", exact=True).select_option("administrators")
    await expect(page.get_by_role("link", name="Olga")).to_have_count(0)
    assert page.url.endswith("among=administrators&tag=&provider=&seen=any&application_id=&role=")
    assert PIA not in await page.content()
    await check_that_one_box_selects_all_rows(page, rows=1)


async def check_that_one_box_selects_all_rows(page: Page, *, rows: int) -> None:
    everyone, selected = page.get_by_label("Select all"), page.locator("input[name=user_id]:checked")
    await everyone.check()
    await expect(selected).to_have_count(rows)
    await selected.last.uncheck()
    await (expect(everyone).to_be_checked(indeterminate=True) if rows > 1 else expect(everyone).not_to_be_checked())
    await page.locator("input[name=user_id]").last.check()
    await expect(everyone).to_be_checked()
    await everyone.uncheck()
    await expect(selected).to_have_count(0)


COUNT_CLICKS: Final = """addEventListener("click", (event) => {
  if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
}, true)"""


async def test_moderator_for_a_week_takes_three_clicks_from_the_page_of_a_person(
    studio: RunningService, page: Page
) -> None:
    await sign_in_to_console(studio, page, ADA, "/console/people")
    errors = listen(page)
    await page.add_init_script(COUNT_CLICKS)
    await page.evaluate("sessionStorage.removeItem('clicks')")
    await page.goto(f"{studio.base_url}{PERSON}")
    await page.get_by_role("button", name="moderator · Shop", exact=True).click()
    await page.get_by_role("button", name="7 days", exact=True).click()
    review = page.get_by_role("region", name="Impact")
    await expect(review.get_by_text("1 person gains", exact=True)).to_be_visible()
    assert await axe_violations(page) == []
    await page.get_by_role("button", name="Assign role", exact=True).click()
    await expect(page.get_by_role("status").filter(has_text="Role assigned")).to_be_visible()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="moderator", exact=True))
    assert (await row.get_by_role("time").get_attribute("datetime")) is not None
    assert await page.evaluate("sessionStorage.clicks") == "3"
    # The same by keyboard, on a phone.
    await page.set_viewport_size(PHONE)
    await page.goto(f"{studio.base_url}{PERSON}")
    await page.get_by_label("Role", exact=True).focus()
    await page.keyboard.type("shop")
    await expect(page.get_by_role("option")).to_have_count(3)
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Role", exact=True)).to_have_value("cashier · Shop")
    await page.get_by_role("button", name="3 days", exact=True).press("Enter")
    await expect(page.get_by_role("heading", name="Assign cashier to Olga?")).to_be_visible()
    assert await page.evaluate(FITS)
    await page.get_by_role("button", name="Assign role", exact=True).press("Enter")
    await expect(page.get_by_role("link", name="cashier", exact=True)).to_be_visible()
    assert errors == []


async def test_space_shows_the_person_of_a_row_beside_the_list(studio: RunningService, page: Page) -> None:
    await sign_in_to_console(studio, page, ADA, "/console/people")
    await load_axe_with_every_page(page)
    errors = listen(page)
    panel = page.locator("[data-peek-panel]")
    names = page.locator("[data-peek] tbody th[scope=row] a")
    await names.nth(1).focus()
    await page.keyboard.press("Space")
    await expect(panel.get_by_role("heading")).to_have_text(await names.nth(1).inner_text())
    await page.keyboard.press("ArrowDown")
    await expect(panel.get_by_role("heading")).to_have_text(await names.nth(2).inner_text())
    assert await axe_violations(page) == []
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    await expect(names.nth(2)).to_be_focused()
    assert errors == []
