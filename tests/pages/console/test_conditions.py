"""The condition builder in a real browser, and checks of every screen of roles and projects."""

from typing import Final

import pytest
from playwright.async_api import Page, ViewportSize, expect

from tests.support.axe import axe_violations, load_axe_with_every_page
from tests.support.console import DEV, OLGA, PROJECT, SHOP, apply_document, sign_in_to_console
from tests.support.guide_pictures import Camera
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROLE: Final = f"/console/roles/{SHOP}/beta/settings"
HOME: Final = f"/console/projects/{PROJECT}"
PHONE: Final = ViewportSize(width=360, height=740)
DESKTOP: Final = ViewportSize(width=1280, height=800)
# What the tests of every screen and of the phone do not open: forms, confirmations, single objects.
SCREENS: Final = (
    *("/console/roles/new", f"/console/roles/{SHOP}/beta/remove"),
    *(f"{HOME}/members/new?q=pia", f"{HOME}/members/{DEV}", f"{HOME}/members/{DEV}/remove", f"{HOME}/members/lists"),
    f"{HOME}/services/{SHOP}",
    *(f"{HOME}/groups/{{staff}}", f"{HOME}/groups/{{staff}}/who", f"{HOME}/groups/{{staff}}/conditions/0"),
    *(f"{HOME}/groups/{{staff}}/remove", f"{HOME}/service_accounts/new"),
)


@pytest.mark.pictures("role-condition")
async def test_a_condition_is_built_with_a_live_count_and_applied(
    service: RunningService, page: Page, picture: Camera
) -> None:
    await apply_document(service)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    await sign_in_to_console(service, page, OLGA, ROLE)
    matching, value = page.locator("#matching"), page.get_by_label("Value")
    await expect(matching).to_contain_text("1 person matches")
    await value.fill("no_one-has-it")
    await expect(matching).to_contain_text("0 people match")
    await page.get_by_label("Type").select_option("domain")
    await value.fill("studio.example")  # immediately: input during loading is not lost
    await expect(matching).to_contain_text("email at studio.example")
    await expect(matching).to_contain_text("4 people match")
    await expect(matching).to_contain_text("Ada, Olga, Dev, Max")
    await picture(page, "role-condition", until=page.locator("section[aria-labelledby=about]"))
    await page.get_by_role("button", name="Add condition", exact=True).click()
    kind = page.get_by_label("Type").nth(1)
    await expect(kind).to_be_focused()
    await kind.select_option("uid")
    await value.nth(1).fill(f"{OLGA}, {DEV}")
    await expect(matching).to_contain_text("email at studio.example, and one of Olga, Dev")
    await expect(matching).to_contain_text("2 people match")
    await page.get_by_role("button", name="Add condition group").click()
    await expect(page.get_by_label("Value")).to_have_count(3)
    await page.get_by_label("Value").nth(2).fill("players.example")
    await expect(matching).to_contain_text("0 people match")
    assert await axe_violations(page) == []
    await page.get_by_role("button", name="Remove row 3").click()
    await expect(matching).to_contain_text("2 people match")
    await page.get_by_label("Value").nth(1).press("Enter")  # like the Save button
    await expect(page.get_by_role("heading", name="Apply changes to beta?")).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text="Pia")).to_contain_text("badge.gold")
    assert await axe_violations(page) == []
    await page.get_by_role("button", name="Apply").click()
    await expect(page.get_by_role("status").first).to_contain_text("Saved")
    role = (await service.services.storage.permissions.application_models([SHOP]))[SHOP].roles["beta"]
    assert role.condition is not None
    assert role.condition.document == {"and": [{"domain": "studio.example"}, {"uid": [OLGA, DEV]}]}
    assert errors == []


async def test_rows_of_a_form_come_and_go_in_place(service: RunningService, page: Page) -> None:
    await apply_document(service)
    await sign_in_to_console(service, page, OLGA, f"{HOME}/members/{DEV}")
    await page.get_by_role("button", name="Add role").click()
    await expect(page.get_by_label("Role").nth(1)).to_be_focused()
    await page.get_by_label("Role").nth(1).select_option("group_manager")
    await page.get_by_label("Where").nth(1).select_option(label="on group Staff")
    await page.get_by_label("Until").nth(1).fill("2031-05-01T10:00")
    await page.get_by_role("button", name="Remove row 1").click()
    await expect(page.get_by_label("Role")).to_have_count(1)
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="Apply changes to Dev?")).to_be_visible()
    await page.get_by_role("button", name="Apply").click()
    row = page.get_by_role("row").filter(has_text="Dev")
    await expect(row).to_contain_text("group_manager on group Staff, until")
    await expect(row).not_to_contain_text("app_developer")


async def test_every_screen_is_accessible_and_fits_a_phone(service: RunningService, page: Page) -> None:
    await apply_document(service)
    groups = (await service.services.storage.projects.project(PROJECT)).groups
    staff = next(group_id for group_id, group in groups.items() if group.title == "Staff")
    await sign_in_to_console(service, page, OLGA)
    await load_axe_with_every_page(page)
    problems: dict[str, object] = {}
    for screen in SCREENS:
        await page.set_viewport_size(DESKTOP)
        response = await page.goto(service.base_url + screen.format(staff=staff))
        assert response is not None
        assert response.status == 200, screen
        problems[screen] = await axe_violations(page)
        await page.set_viewport_size(PHONE)
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width == PHONE["width"], screen
    assert {screen: what for screen, what in problems.items() if what} == {}
