"""The API documentation in a browser: every operation without JavaScript, and requests with one's own session."""

import pytest
from playwright.async_api import Browser, Locator, Page, Request, expect

from gatehouse.demo.accounts import BY_NAME
from tests.support.axe import LOOK_RULES, axe_violations
from tests.support.demo import Demo, sign_in_to_demo

pytestmark = pytest.mark.asyncio(loop_scope="session")


def operation_on(page: Page, operation_id: str) -> Locator:
    return page.locator(f"[id='{operation_id}']")


async def open_form(page: Page, operation_id: str, title: str) -> Locator:
    operation = operation_on(page, operation_id)
    if not await operation.evaluate("operation => operation.open"):  # axe opens all of them
        await operation.locator("> summary").click()
    example = operation.locator(".example").filter(has=page.get_by_role("heading", name=title, exact=True))
    await example.get_by_role("button", name="Try it").click()
    return example.locator("form")


async def test_examples_are_sent_with_the_own_session_and_without_its_cookie(demo: Demo, page: Page) -> None:
    errors: list[str] = []
    sent: list[Request] = []
    page.on("console", lambda message: errors.append(message.text) if "Content Security" in message.text else None)
    page.on("request", lambda request: sent.append(request) if "/api/" in request.url else None)
    await page.emulate_media(reduced_motion="reduce")
    await sign_in_to_demo(page, demo, "mara")
    await page.goto(f"{demo[0]}/docs")
    await expect(page.get_by_text("Signed in as Mara Lindgren")).to_be_visible()

    form = await open_form(page, "permissions.explain", "explain")  # a POST
    await form.get_by_role("button", name="Send").click()
    await expect(form.locator("[data-answer=status]")).to_contain_text("200 OK")
    await expect(form.locator("[data-answer=body]")).to_contain_text('"allowed": true')
    await form.get_by_text("Headers").click()
    await expect(form.locator("[data-answer=headers]")).to_contain_text("content-type: application/json")

    await page.get_by_role("searchbox", name="Filter").fill("changes")
    form = await open_form(page, "permissions.changes", "roles of an application")  # a GET, which has no end
    await form.get_by_role("button", name="Send").click()
    await expect(form.locator("[data-answer=status]")).to_contain_text("200 OK")
    await expect(form.locator("[data-answer=body]")).to_contain_text("retry: 2000")

    await page.get_by_role("searchbox", name="Filter").fill("publish")
    form = await open_form(page, "permissions.publish", "create")  # refused: it needs an authenticator app
    await form.get_by_role("button", name="Send").click()
    await expect(form.locator(".answer")).to_be_hidden()  # the browser asks for the check mark first
    await form.get_by_label("Change data of this installation").check()
    await form.get_by_role("button", name="Send").click()
    await expect(form.locator("[data-answer=status]")).to_contain_text("403")
    cookies = [(await request.all_headers()).get("cookie") for request in sent]  # `headers` leaves cookies out
    assert (errors, cookies) == ([], [None] * 3)

    await page.get_by_role("searchbox", name="Filter").fill("explain")
    await expect(operation_on(page, "permissions.check")).to_be_hidden()
    await page.evaluate("for (const hidden of document.querySelectorAll('main [hidden]')) hidden.remove()")
    await expect(operation_on(page, "permissions.check")).to_have_count(
        0
    )  # axe would read 67 operations of one shape
    await expect(operation_on(page, "permissions.explain")).to_be_visible()
    assert await axe_violations(page) == []
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    assert await axe_violations(page, LOOK_RULES) == []


async def test_the_documentation_works_by_keyboard_and_asks_for_what_it_needs(demo: Demo, browser: Browser) -> None:
    context = await browser.new_context(viewport={"width": 390, "height": 844}, locale="en-GB")
    page = await context.new_page()
    await page.goto(f"{demo[0]}/docs#permissions.user")
    await expect(operation_on(page, "permissions.user").get_by_text("Every action needs")).to_be_visible()
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") == 390

    summary = operation_on(page, "oauth.userinfo.get").locator("> summary")
    await summary.focus()
    for key in ("Enter", "Tab", "Tab", "Tab", "Enter"):  # open it; past the line and Copy to Try it
        await page.keyboard.press(key)
    form = operation_on(page, "oauth.userinfo.get").locator("form")
    await expect(form.get_by_label("Access token")).to_be_focused()
    await page.keyboard.type("not-a-token")
    await page.keyboard.press("Enter")
    await expect(form.locator("[data-answer=status]")).to_contain_text("401")

    form = await open_form(page, "permissions.check", "one permission")
    await form.get_by_role("button", name="Send").click()
    await expect(form.get_by_role("alert")).to_have_text(
        "Sign in or confirm it's you at the top of the page, then send again."
    )
    form = await open_form(page, "game.get_gsid_result", "poll")
    await form.get_by_role("button", name="Send").click()
    await expect(form.get_by_role("alert")).to_have_text("Replace {gsid} first.")
    assert await page.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
    await context.close()


async def test_every_operation_is_shown_without_javascript(demo: Demo, browser: Browser) -> None:
    context = await browser.new_context(java_script_enabled=False, locale="en-GB")
    page = await context.new_page()
    await page.goto(f"{demo[0]}/docs")
    await operation_on(page, "permissions.check").locator("> summary").click()
    line = operation_on(page, "permissions.check").locator("pre").first
    await expect(line).to_contain_text(f"curl -X POST '{demo[0]}/api/permissions/check'")
    await expect(page.get_by_role("button", name="Try it")).to_have_count(0)
    await expect(page.locator(".operation p, .fields dd").filter(has_text="`")).to_have_count(0)
    await page.get_by_role("button", name="Sign in").click()
    person = BY_NAME["jonas"]
    await page.fill("[name=login]", person.login)
    await page.fill("[name=password]", demo[1].passwords["jonas"])
    await page.press("[name=password]", "Enter")
    await page.wait_for_url("**/docs")  # back to where they came from
    await expect(page.get_by_text("Angemeldet als Jonas Weber")).to_be_visible()
    await context.close()
