"""Access, game sessions and activity in a real browser: by keyboard, live updates, accessibility."""

import pytest
from playwright.async_api import Browser, Page, expect

from tests.pages.test_look import listen
from tests.support.axe import axe_violations
from tests.support.browser import PASSWORD
from tests.support.console import ADA, OLGA, PIA, PROJECT, SHOP, apply_document, sign_in_to_console
from tests.support.game import register_game
from tests.support.guide_pictures import Camera
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")

ACCESS, GAMES, ACTIVITY = "/console/access", "/console/games", "/console/activity"

HIDE = "(is) => Object.defineProperty(document, 'hidden', { get: () => is, configurable: true })"

SHOWN = """(time) =>
  new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "short"%s }).format(new Date(time.dateTime))"""
AS_LOCAL, AS_UTC = SHOWN % "", SHOWN % ', timeZone: "UTC"'


async def test_failed_sign_ins_tile_links_to_hourly_numbers_and_refused_requests(
    service: RunningService, page: Page
) -> None:
    await apply_document(service)
    errors = listen(page)
    await sign_in_to_console(service, page, ADA, "/console")
    numbers = page.locator("#numbers table")
    await expect(numbers).to_be_hidden()
    await page.locator(".tiles div", has_text="Failed sign-ins").get_by_role("link").click()
    await expect(numbers).to_be_visible()
    await page.get_by_role("link", name="Refused requests").click()
    await expect(page.get_by_role("heading", name="Refused requests")).to_be_visible()
    assert errors == []


async def test_projects_and_groups_are_offered_in_comboboxes(service: RunningService, page: Page) -> None:
    await apply_document(service)
    errors = listen(page)
    await sign_in_to_console(service, page, ADA, f"{ACCESS}/who")
    project = page.get_by_role("combobox", name="Project")
    await project.click()
    offered = page.get_by_role("option", name="Mind Games")
    await expect(offered).to_contain_text(PROJECT)
    await project.press_sequentially("nothing")
    await expect(offered).to_have_count(0)
    await project.press("Escape")
    assert "/access/who" in page.url
    await page.goto(f"{service.base_url}{ACCESS}/simulate?change=group_member&application_id={SHOP}")
    group = page.get_by_role("combobox", name="Group")
    await group.press_sequentially("test")
    await page.get_by_role("option", name="Testers").click()
    await expect(group).to_have_value("Testers")
    assert errors == []


@pytest.mark.pictures("access-check", "access-who", "access-simulate")
async def test_a_decision_is_asked_for_and_read_by_keyboard(
    service: RunningService, page: Page, picture: Camera
) -> None:
    await apply_document(service)
    errors = listen(page)
    await sign_in_to_console(service, page, ADA, f"{ACCESS}/check")
    assert await axe_violations(page) == []
    for text, name in (("pia", "Pia"), ("sho", "Shop"), ("kick", "user.kick")):  # of the application just chosen
        await page.locator("[name=user_id]").focus() if name == "Pia" else await page.keyboard.press("Tab")
        await page.keyboard.type(text)
        await expect(page.get_by_role("option", name=name)).to_be_visible()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Yes: Pia has user.kick in Shop")).to_be_visible()
    assigned = page.locator(".tree").get_by_text("Assigned")
    await expect(assigned).to_be_visible()  # the deciding path is expanded
    role = page.locator("summary", has_text="Role moderator: allow")
    assert await role.locator(".words").evaluate("one => getComputedStyle(one).fontWeight") == "700"
    await role.focus()
    await page.keyboard.press("Enter")
    await expect(assigned).to_be_hidden()
    await page.keyboard.press("Space")
    await expect(assigned).to_be_visible()
    assert await axe_violations(page) == []
    await page.get_by_role("link", name="Who can").click()
    await page.get_by_role("combobox", name="Application").fill("Shop")
    await page.keyboard.press("Tab")
    cell = page.get_by_role("row", name="Pia").get_by_role("link", name="by condition")
    await expect(cell).to_be_visible()
    await picture(page, "access-who")
    assert await axe_violations(page) == []
    await cell.click()
    await expect(page.get_by_role("heading", name="Yes: Pia has badge.gold in Shop")).to_be_visible()
    simulation = f"{ACCESS}/simulate?change=take_role&application_id={SHOP}&user_id={PIA}&role=moderator"
    await page.goto(f"{service.base_url}{simulation}")
    await expect(page.get_by_text("1 person loses").first).to_be_visible()
    await picture(page, "access-simulate")
    assert await axe_violations(page) == []
    await page.goto(f"{service.base_url}{ACCESS}/check?user_id={OLGA}&application_id={SHOP}&rule=badge.gold")
    await expect(page.get_by_role("heading", name="No: Olga does not have badge.gold in Shop")).to_be_visible()
    await picture(page, "access-check")
    assert errors == []


async def test_game_sessions_come_by_themselves_until_they_are_held_still_or_no_one_looks(
    service: RunningService, page: Page
) -> None:
    await apply_document(service)
    await page.clock.install()
    first = await register_game(service, app_id=SHOP)
    errors, requests = listen(page), record_requests(page)
    await sign_in_to_console(service, page, ADA, GAMES)
    link = page.get_by_role("link", name=first.gsid[:13])
    await link.focus()
    second = await register_game(service, app_id=SHOP)
    await page.clock.run_for(3_100)
    await expect(page.get_by_role("link", name=second.gsid[:13])).to_be_visible()
    await expect(link).to_be_focused()  # keyboard focus stays where it was
    await page.evaluate(HIDE, True)
    await expect_no_requests(page, requests)
    await page.evaluate(HIDE, False)
    await page.get_by_role("button", name="Pause updates").click()
    await expect_no_requests(page, requests)
    assert await axe_violations(page) == []
    await link.click()
    picture = page.get_by_role("img", name="events in order")
    await expect(picture).to_contain_text("Started by the game")
    await service.services.storage.game_sessions.record_progress(first.gsid, service.clock.now(), signing_in=False)
    await page.clock.run_for(3_100)
    await expect(picture).to_contain_text("Page opened")
    await page.locator("summary", has_text="Show as table").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("row", name="Page opened")).to_be_visible()
    assert await axe_violations(page) == []
    await page.goto(f"{service.base_url}{ACTIVITY}")
    await service.client.post("/proxy/api/login", json={"login": "pia@players.example", "password": PASSWORD})
    await page.clock.run_for(3_100)
    await expect(page.locator(".log summary", has_text="Pia signed in")).to_be_visible()
    await page.get_by_label("Type").select_option("project")
    entry = page.locator(".log summary", has_text="created project")
    await expect(page.locator(".log summary", has_text="created the account")).to_have_count(0)
    await entry.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name="Open record").first).to_be_visible()
    assert await axe_violations(page) == []
    assert errors == []


async def test_activity_is_filtered_by_a_person_who_is_found_by_name(service: RunningService, page: Page) -> None:
    await apply_document(service)
    errors = listen(page)
    await sign_in_to_console(service, page, ADA, ACTIVITY)
    others = page.locator(".log > li", has_text="created project")
    await expect(others.first).to_be_visible()
    await page.locator("summary", has_text="More filters").click()
    by = page.get_by_role("combobox", name="By", exact=True)
    await by.press_sequentially("studio")  # of the email address
    option = page.get_by_role("option", name="Ada")
    await expect(option).to_contain_text("ada@studio.example")
    assert page.url == f"{service.base_url}{ACTIVITY}"  # options do not change the page
    assert await axe_violations(page) == []
    while await option.get_attribute("aria-selected") != "true":
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(by).to_have_value("Ada")
    await page.wait_for_url(f"**{ACTIVITY}?*actor={ADA}*")
    await expect(page.locator(".log > li", has_text="Ada").first).to_be_visible()
    await expect(others).to_have_count(0)
    assert errors == []
    await by.fill("Zzz")
    await by.press("Tab")
    await expect(page.get_by_role("alert")).to_contain_text("No person called “Zzz”. Try an email or ID.")
    await expect(by).to_have_value("Zzz")


async def test_times_stay_in_the_readers_zone_when_a_list_is_searched(
    service: RunningService, browser: Browser
) -> None:
    await apply_document(service)
    context = await browser.new_context(locale="en-GB", timezone_id="Asia/Kathmandu")  # UTC+5:45
    page = await context.new_page()
    await sign_in_to_console(service, page, ADA, ACTIVITY)
    first = page.locator(".log time").first
    assert await first.get_attribute("title") != await first.evaluate(AS_UTC)
    day = await page.locator(".log .day h2").first.inner_text()
    assert day in await first.evaluate(AS_LOCAL)
    await page.get_by_label("Type").select_option("project")
    await page.wait_for_url("**group=project*")
    await expect(page.locator(".log > li", has_text="created the account")).to_have_count(0)
    await expect(first).to_be_visible()
    for time in await page.locator(".log time").all():
        await expect(time).to_have_attribute("title", await time.evaluate(AS_LOCAL))
    await context.close()


async def expect_no_requests(page: Page, requests: list[str]) -> None:
    before = len(requests)
    await page.clock.run_for(10_000)
    assert len(requests) == before


def record_requests(page: Page) -> list[str]:
    """Every request for the list, as it is sent."""
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if request.url.endswith(GAMES) else None)
    return requests
