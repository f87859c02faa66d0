"""The users x roles table in a real browser: toggle, set an expiry, choose a project, review, apply, undo."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from gatehouse.permissions.model.facts import Assignment
from gatehouse.permissions.model.rules import End, Scope
from tests.support.axe import axe_violations
from tests.support.console import (
    ADA,
    MAX,
    OLGA,
    PIA,
    PROJECT,
    SHOP,
    ConsoleBrowsers,
    apply_document,
    sign_in_to_console,
)
from tests.support.guide_pictures import Camera
from tests.support.service import RunningService
from tests.support.staged_tables import form_of, record_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = f"/console/applications/{SHOP}/users"
COLUMNS = {"beta": 0, "cashier": 1, "moderator": 2}


def cell(page: Page, user_id: str, role: str) -> Locator:
    return page.locator(f"tr[data-row='{user_id}'] td").nth(COLUMNS[role]).locator("[data-value]")


def review_button(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile(r"^Review \d+ change"))


@pytest.mark.both_databases
@pytest.mark.pictures("users-review")
async def test_roles_are_given_for_a_time_and_taken_reviewed_applied_and_undone(
    service: RunningService, page: Page, picture: Camera
) -> None:
    await apply_document(service)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    await sign_in_to_console(service, page, MAX, PAGE)
    moderator = cell(page, PIA, "moderator")
    await moderator.click()
    await expect(review_button(page)).to_have_text("Review 1 change")
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("Alt+ArrowDown")
    await expect(page.get_by_role("button", name="No end")).to_be_focused()
    assert await axe_violations(page) == []
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")  # 1 hour
    await expect(cell(page, PIA, "cashier")).to_be_focused()
    await expect(cell(page, PIA, "cashier")).to_have_text("1 hour")
    await expect(page.get_by_label("Show", exact=True)).to_have_count(0)
    await page.get_by_label("Name, or a full ID").fill(OLGA)
    await expect(page.locator(f"tr[data-row='{OLGA}']")).to_have_count(1)
    await cell(page, OLGA, "cashier").hover()
    await page.locator(f"tr[data-row='{OLGA}'] td").nth(1).get_by_label("Time limit").click()
    await page.get_by_role("button", name="7 days").click()
    await expect(review_button(page)).to_have_text("Review 3 changes")
    now = service.services.clock.now()
    await review_button(page).click()
    await expect(page.get_by_role("heading", name="3 changes")).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text="Pia")).to_contain_text("store.refund")
    await picture(page, "users-review")
    assert await axe_violations(page) == []
    await page.get_by_role("button", name="Apply 3 changes").click()
    await expect(page.get_by_role("status")).to_contain_text("3 changes applied")
    assert (await record_of(service, SHOP, PIA)).root.roles == (
        Assignment(role="cashier", end=End(expired=now + 3600)),
    )
    assert await axe_violations(page) == []
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_role("button", name="Apply 3 changes").click()
    await expect(page.get_by_role("status")).to_contain_text("3 changes applied")
    assert (await record_of(service, SHOP, PIA)).root.roles == (Assignment(role="moderator"),)
    assert (await record_of(service, SHOP, OLGA)).root.roles == ()
    assert errors == []

    await page.context.clear_cookies()
    await sign_in_to_console(service, page, ADA, "/console/activity")
    await expect(page.locator(".said time")).to_have_count(2)  # the ends of the roles that were assigned
    await expect(page.locator(".log .day")).to_have_count(1)  # records are under their own day


async def test_a_project_is_another_table_and_what_failed_stays_staged(service: RunningService, page: Page) -> None:
    await apply_document(service)
    console_browsers = ConsoleBrowsers(service)
    await sign_in_to_console(service, page, OLGA, PAGE)
    await cell(page, PIA, "cashier").click()
    await page.get_by_label("Scope", exact=True).select_option(PROJECT)
    await expect(cell(page, PIA, "moderator")).to_have_attribute("data-value", "")  # assigned at the root
    await cell(page, PIA, "moderator").click()
    await expect(review_button(page)).to_have_text("Review 2 changes")
    await review_button(page).click()
    await expect(page.get_by_text("in Mind Games")).to_be_visible()
    ada = await console_browsers(ADA)
    await ada.get(PAGE)
    theirs = await ada.post(f"{PAGE}/review", row=PIA, column="moderator", value="remove")
    await ada.client.post(f"{PAGE}/apply", data=form_of(theirs.text))
    await page.get_by_role("button", name="Apply 2 changes").click()
    await expect(page.get_by_role("heading", name="1 person could not be changed")).to_be_visible()
    assert await axe_violations(page) == []
    await page.get_by_role("button", name="Back to the table").click()
    await expect(review_button(page)).to_have_text("Review 2 changes")
    await review_button(page).click()
    await page.get_by_role("button", name="Apply 2 changes").click()
    await expect(page.get_by_role("status")).to_contain_text("2 changes applied")
    scopes = (await record_of(service, SHOP, PIA)).scopes
    assert scopes[Scope(PROJECT)].roles == (Assignment(role="moderator"),)
    assert scopes[Scope()].roles == (Assignment(role="cashier"),)
    await console_browsers.close()
