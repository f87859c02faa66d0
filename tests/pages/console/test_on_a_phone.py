"""The console on a phone: rows are stacked, and tables that scroll sideways show it."""

from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.pages.console.test_every_screen import MATRICES, PHONE
from tests.support.demo import SCREENS, TABS, Demo, sign_in_to_demo

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONSOLE: Final = SCREENS | TABS
CURRENT_TAB: Final = """() => {
  const row = document.querySelector(".tabs"), tab = row.querySelector("[aria-current]");
  const place = row.getBoundingClientRect(), { left, right } = tab.getBoundingClientRect();
  return place.left <= left && right <= place.right + 1;  // of a pixel, parts are lost
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def phone(browser: Browser, demo: Demo) -> AsyncIterator[Page]:
    context = await browser.new_context(viewport=PHONE, locale="en-GB", timezone_id="UTC", has_touch=True)
    page = await context.new_page()
    await sign_in_to_demo(page, demo, "mara")
    yield page
    await context.close()


async def test_a_stacked_row_is_still_a_row(phone: Page, demo: Demo) -> None:
    await phone.goto(f"{demo[0]}{CONSOLE['people']}")
    row = phone.get_by_role("row").filter(has_text="Noor Haddad")
    assert await row.get_by_role("rowheader").count() == 1
    named = await row.get_by_role("cell").evaluate_all("(cells) => cells.map((one) => one.dataset.column)")
    assert named == (await phone.get_by_role("columnheader").all_text_contents())[1:]


async def test_scrollable_areas_fade_at_the_edge_and_the_current_tab_is_visible(phone: Page, demo: Demo) -> None:
    for name in (
        "person-activity",
        "service-accounts",
        "application-settings",
        "configuration",
    ):  # the last of their rows
        await phone.goto(f"{demo[0]}{CONSOLE[name]}")
        assert (name, await phone.evaluate(CURRENT_TAB)) == (name, True)
        assert await phone.locator(".tabs.more-before:not(.more-after)").count() == 1
    for name in MATRICES:
        await phone.goto(f"{demo[0]}{CONSOLE[name]}")
        first = phone.locator(":is(.grid, .matrix) tbody th[scope=row]").first
        before = await first.bounding_box()
        await phone.locator(".more-after:is(.grid, .matrix):not(.more-before)").evaluate(
            "(box) => box.scrollBy(60, 0)"
        )
        await phone.locator(".more-after.more-before:is(.grid, .matrix)").wait_for()
        assert await first.bounding_box() == before
