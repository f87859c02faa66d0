"""What every screen keeps to, in a real browser: requests, heights of rows, switches, toasts, the API icon."""

from typing import Final

import pytest
from playwright.async_api import Browser, Page, Request, ViewportSize, expect

from tests.support.console import ADA, apply_document, sign_in_to_console
from tests.support.demo import SCREENS, Demo, sign_in_to_demo
from tests.support.service import RunningService

pytestmark = pytest.mark.asyncio(loop_scope="session")

MAX_REQUESTS: Final = 12
ROW_HEIGHT: Final = 44  # pixels
LOW_ROWS: Final = """() => [...document.querySelectorAll("main .stacks tbody tr:not(.family, .group-name)")]
  .filter((row) => row.checkVisibility() && row.getBoundingClientRect().height < 43.5).map((row) => row.outerHTML)"""
SHORT_ROWS: Final = """() => [...document.querySelectorAll("main .stacks tbody tr:not(.family, .group-name)")]
  .filter((row) => row.checkVisibility() && [...row.cells].every((cell) => cell.textContent.trim().length < 16
    && !cell.querySelector("small, br, ul, form, input, button")))
  .map((row) => row.getBoundingClientRect().height)"""
COVERS: Final = """() => {
  const [toast, bar] = [".toast", ".save-bar"].map((one) => document.querySelector(one).getBoundingClientRect());
  return toast.left < bar.right && bar.left < toast.right && toast.top < bar.bottom && bar.top < toast.bottom;
}"""


async def test_first_visit_of_a_screen_takes_at_most_twelve_requests_and_rows_have_44_pixels(
    browser: Browser, demo: Demo
) -> None:
    signing_in = await browser.new_context()
    await sign_in_to_demo(await signing_in.new_page(), demo, "mara")
    state = await signing_in.storage_state()
    await signing_in.close()
    too_many, low = dict[str, list[str]](), dict[str, list[str]]()
    short: set[float] = set()
    for name, path in {**SCREENS, "account": "/account", "guides": "/docs/guides", "sign-in": "/sign-in"}.items():
        context = await browser.new_context(
            storage_state=None if name == "sign-in" else state, viewport=ViewportSize(width=1280, height=800)
        )
        page = await context.new_page()
        asked: list[str] = []
        page.on("request", note_into(asked))
        await page.goto(f"{demo[0]}{path}")
        if len(asked) > MAX_REQUESTS:
            too_many[name] = asked
        if rows := await page.evaluate(LOW_ROWS):
            low[name] = rows
        short |= {*await page.evaluate(SHORT_ROWS)}
        await context.close()
    assert (too_many, low) == ({}, {})
    assert max(short, default=ROW_HEIGHT) <= ROW_HEIGHT + 0.5


def note_into(asked: list[str]) -> "NoteRequest":
    return NoteRequest(asked)


class NoteRequest:
    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    def __call__(self, request: Request) -> None:
        if not request.url.startswith("data:"):
            self._asked.append(request.url)


async def test_setting_that_is_on_or_off_is_a_switch_for_keys_and_the_toast_leaves_the_save_bar_free(
    page: Page, service: RunningService
) -> None:
    await apply_document(service)
    await sign_in_to_console(service, page, ADA, "/console/settings/sign-in")
    for viewport in (ViewportSize(width=1280, height=800), ViewportSize(width=360, height=740)):
        await page.set_viewport_size(viewport)
        switch = page.get_by_role("switch", name="Self-registration")
        was_on = await switch.is_checked()
        box = await switch.bounding_box()
        assert box is not None
        assert box["width"] > 1.5 * box["height"]  # not a box to tick
        await switch.press("Space")
        await page.keyboard.press("Enter")
        await expect(page.locator(".toast")).to_be_visible()
        assert service.services.settings.accounts.registration is not was_on
        assert not await page.evaluate(COVERS)
        await expect(page.get_by_role("switch", name="Self-registration")).to_be_checked(checked=not was_on)


async def test_icon_of_the_heading_opens_the_page_as_a_call_of_the_api(page: Page, demo: Demo) -> None:
    await sign_in_to_demo(page, demo, "mara")
    await page.goto(f"{demo[0]}{SCREENS['project']}")
    await page.get_by_role("button", name="Show as API call").click()
    panel = page.get_by_role("dialog", name="Show as API call")
    await expect(panel.get_by_text("curl -X POST")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
