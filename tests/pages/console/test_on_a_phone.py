"""The console on a phone: row actions are reachable, and tables that scroll sideways show it."""

from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize

from tests.support.axe import ALL_RULES, LOOK_RULES, axe_violations
from tests.support.demo import SCREENS, TABS, Demo, sign_in_to_demo

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONSOLE: Final = SCREENS | TABS
PHONE: Final = ViewportSize(width=360, height=740)
MATRICES: Final = ("matrix", "users", "who")  # real tables, which scroll sideways
OUT_OF_REACH: Final = """() => [...document.querySelectorAll("main table :is(a, button, input, select, td), .stacks")]
  .filter((one) => one.getBoundingClientRect().right > document.querySelector("main").clientWidth
    || one.matches(".stacks") && one.scrollWidth > one.clientWidth)
  .map((one) => one.outerHTML)"""
CURRENT_TAB: Final = """() => {
  const row = document.querySelector(".tabs"), tab = row.querySelector("[aria-current]");
  const place = row.getBoundingClientRect(), { left, right } = tab.getBoundingClientRect();
  return place.left <= left && right <= place.right + 1;  // of a pixel, parts are lost
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def phone(browser: Browser, demo: Demo) -> AsyncIterator[Page]:
    context = await browser.new_context(viewport=PHONE, locale="en-GB", timezone_id="UTC", has_touch=True)
    page = await context.new_page()
    await sign_in_to_demo(page, demo, "mara")
    yield page
    await context.close()


async def test_no_list_has_controls_outside_the_screen(phone: Page, demo: Demo) -> None:
    problems = list[str]()
    for name, path in CONSOLE.items():
        await phone.goto(f"{demo[0]}{path}")
        # Axe expands collapsed sections; test_every_screen checks most screens by all rules.
        rules = LOOK_RULES if name in SCREENS else ALL_RULES
        problems += [f"{name}: {violation}" for violation in await axe_violations(phone, rules)]
        if name not in MATRICES:
            problems += [f"{name}: {one}" for one in await phone.evaluate(OUT_OF_REACH)]
    assert problems == []
    await phone.goto(f"{demo[0]}{CONSOLE['people']}")
    row = phone.get_by_role("row").filter(has_text="Noor Haddad")  # it is stacked, and still a row
    assert await row.get_by_role("rowheader").count() == 1
    named = await row.get_by_role("cell").evaluate_all("(cells) => cells.map((one) => one.dataset.column)")
    assert named == (await phone.get_by_role("columnheader").all_text_contents())[1:]


async def test_scrollable_areas_fade_at_the_edge_and_the_current_tab_is_visible(phone: Page, demo: Demo) -> None:
    for name in ("person-activity", "service-accounts", "application-settings", "risks"):  # the last of their rows
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
