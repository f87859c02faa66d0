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


async def test_projects_and_groups_are_suggested_in_the_fields_that_want_their_ids(
    service: RunningService, page: Page
) -> None:
    await apply_document(service)
    errors = listen(page)
    await sign_in_to_console(service, page, ADA, f"{ACCESS}/who")
    await page.get_by_label("Project").focus()
    offered = page.locator(f"#project_id-places option[value='{PROJECT}']")
    await expect(offered).to_have_text("Mind Games")
    await page.get_by_label("Project").press_sequentially("nothing")
    await expect(offered).to_have_count(0)
    assert "/access/who" in page.url
    await page.goto(f"{service.base_url}{ACCESS}/simulate?change=group_member&application_id={SHOP}")
    await page.locator("[name=group_id]").press_sequentially("test")
    await expect(page.locator("#group_id-places option")).to_have_text([f"Testers · {PROJECT}"])
    assert errors == []


@pytest.mark.pictures("access-check", "access-who", "access-simulate")
async def test_a_decision_is_asked_for_and_read_by_keyboard(
    service: RunningService, page: Page, picture: Camera
) -> None:
    await apply_document(service)
    errors = listen(page)
    await sign_in_to_console(service, page, ADA, f"{ACCESS}/check")
    assert await axe_violations(page) == []
    await page.locator("[name=user_id]").press_sequentially("pia")
    await expect(page.locator(f"#user_id-people option[value='{PIA}']")).to_be_attached()  # suggested in the meantime
    await page.keyboard.press("Tab")
    await page.keyboard.type(str(SHOP))
    await page.keyboard.press("Tab")
    await expect(page.locator("#rules option[value='user.kick']")).to_be_attached()  # of the application just entered
    await page.keyboard.type("user.kick")
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
    await page.get_by_label("Application").fill(str(SHOP))
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
    await page.get_by_label("By", exact=True).press_sequentially("ada")
    await expect(page.locator(f"#actor-people option[value='{ADA}']")).to_be_attached()
    assert page.url == f"{service.base_url}{ACTIVITY}"  # suggestions do not change the page
    await page.get_by_label("By", exact=True).fill(ADA)  # the same as choosing a suggestion
    await page.keyboard.press("Tab")
    await page.wait_for_url(f"**{ACTIVITY}?*actor={ADA}*")
    await expect(page.locator(".log > li", has_text="Ada").first).to_be_visible()
    await expect(others).to_have_count(0)
    assert errors == []


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
        assert await time.get_attribute("title") == await time.evaluate(AS_LOCAL)
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
