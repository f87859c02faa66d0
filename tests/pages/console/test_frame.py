"""The frame of the console in a real browser: search by keys, the sidebar, toasts, unsaved changes."""

from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Dialog, Page, ViewportSize, expect

from tests.support.axe import axe_violations
from tests.support.demo import NOOR, Demo, sign_in_to_demo

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOCUSED: Final = """() => {
  const field = document.activeElement, { left, top, width, height } = field.getBoundingClientRect();
  const shown = document.elementFromPoint(left + width / 2, top + height / 2);
  return [field.name ?? "", Boolean(shown?.closest(".save-bar")) && !field.closest(".save-bar")];
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def admin(browser: Browser, demo: Demo) -> AsyncIterator[Page]:
    context = await browser.new_context(locale="en-GB", viewport=ViewportSize(width=1280, height=800))
    page = await context.new_page()
    await sign_in_to_demo(page, demo, "mara")
    yield page
    await context.close()


async def test_control_k_searches_everything_and_the_keys_are_shown(admin: Page, demo: Demo) -> None:
    await admin.keyboard.press("Control+k")
    palette = admin.get_by_role("dialog", name="Search everything")
    await expect(palette.get_by_role("link", name="Import people")).to_be_visible()  # before anything is typed
    await admin.keyboard.type("noor")
    await expect(palette.get_by_role("link", name="Noor Haddad")).to_be_visible()
    assert await axe_violations(admin) == []
    await admin.keyboard.press("ArrowDown")
    await admin.keyboard.press("ArrowUp")
    await admin.keyboard.press("Enter")
    await admin.wait_for_url(f"**/console/people/{NOOR}")
    await admin.locator("h1").click()
    await admin.keyboard.press("?")
    await expect(admin.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    await admin.keyboard.press("Escape")
    await expect(admin.get_by_role("dialog")).to_have_count(0)
    await admin.goto(f"{demo[0]}/console/people")
    await admin.get_by_role("cell", name="noor.haddad@mail.example").click()  # a row opens at a click
    await admin.wait_for_url(f"**/console/people/{NOOR}")


async def test_the_sidebar_stays_collapsed_and_the_theme_changes_in_place(admin: Page, demo: Demo) -> None:
    await admin.goto(f"{demo[0]}/console/roles")
    await admin.get_by_role("button", name="Collapse or expand the sidebar").click()
    assert await admin.locator(".side").evaluate("(side) => side.clientWidth") < 60
    await admin.reload()
    await expect(admin.locator("body.collapsed")).to_have_count(1)
    assert await axe_violations(admin) == []
    await admin.get_by_role("button", name="Mara Lindgren").click()
    await admin.get_by_role("button", name="Dark").click()
    await admin.wait_for_url("**/console/roles")
    await expect(admin.locator("html[data-theme=dark]")).to_have_count(1)
    await admin.get_by_role("button", name="Mara Lindgren").click()
    await admin.get_by_role("button", name="System").click()
    await expect(admin.locator("html:not([data-theme])")).to_have_count(1)


async def test_the_menu_of_a_phone_opens_and_closes(admin: Page) -> None:
    await admin.set_viewport_size(ViewportSize(width=360, height=740))
    entry = admin.get_by_role("link", name="Game sessions")
    await expect(entry).to_be_hidden()
    await admin.get_by_role("button", name="Menu").click()
    await expect(entry).to_be_visible()
    assert await axe_violations(admin) == []
    await admin.keyboard.press("Escape")
    await expect(entry).to_be_hidden()


async def test_unsaved_changes_are_shown_and_leaving_asks(admin: Page, demo: Demo) -> None:
    asked: list[str] = []

    async def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    admin.on("dialog", stay)
    await admin.goto(f"{demo[0]}/console/roles/50001/game_master/settings")
    unsaved, unchanged = admin.get_by_text("Unsaved changes", exact=True), admin.get_by_text("No changes", exact=True)
    await expect(unchanged).to_be_in_viewport()
    await admin.get_by_role("button", name="Add condition", exact=True).first.click()  # answered by htmx
    await expect(unsaved).to_be_in_viewport()
    await admin.get_by_role("link", name="Roles", exact=True).first.click()
    await expect(unsaved).to_be_visible()
    assert asked == ["beforeunload"]
    await admin.get_by_role("button", name="Remove row").last.click()
    await expect(unchanged).to_be_visible()
    await admin.get_by_label("Seat limit").fill("many")
    await admin.keyboard.press("Control+s")
    await expect(admin.get_by_role("alert")).to_be_visible()
    await expect(unsaved).to_be_visible()  # the answer holds what was typed, which is not stored
    assert asked == ["beforeunload"]  # saving does not ask


async def test_the_save_bar_never_covers_the_focus(admin: Page, demo: Demo) -> None:
    await admin.set_viewport_size(ViewportSize(width=1280, height=760))
    await admin.goto(f"{demo[0]}/account")
    fields: list[str] = []
    while "zoneinfo" not in fields:
        await admin.keyboard.press("Tab")
        name, is_covered = await admin.evaluate(FOCUSED)
        assert not is_covered, name
        fields.append(name)


async def test_each_form_of_the_account_tells_its_own_changes(admin: Page, demo: Demo) -> None:
    await admin.goto(f"{demo[0]}/account")
    await admin.get_by_label("User name").fill("mara.lindgren.2")
    states = admin.locator(".save-bar .state")
    await expect(states).to_have_text(["No changes", "Unsaved changes", "No changes"])
    await admin.get_by_label("User name").fill("---")
    await admin.get_by_role("button", name="Save user name").click()
    await expect(admin.get_by_role("alert")).to_be_visible()
    await expect(states).to_have_text(["No changes", "Unsaved changes", "No changes"])
