"""A real Chromium for page tests, driven by Playwright.

All tests of a process share one browser, because a start takes almost a second; each test has its own context. The
browser belongs to an event loop, so page tests and their fixtures run on the session's loop.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from playwright.async_api import Browser, Page, async_playwright
from playwright.sync_api import Browser as BlockingBrowser
from playwright.sync_api import sync_playwright

from tests.support.capabilities import CHROMIUM, require_program
from tests.support.find_programs import ROOT

SCREENSHOTS: Final = ROOT / "screenshots"
# Playwright's name for --no-sandbox: Chromium refuses to start as root without it, a container may lack what the
# sandbox needs, and the tests open only our own pages.
SANDBOX: Final = False
# Drawing in a process of its own takes more CPU time: each frame is handed over to it.
ARGUMENTS: Final = ("--in-process-gpu",)


@asynccontextmanager
async def launch_browser() -> AsyncIterator[Browser]:
    executable = require_program(CHROMIUM)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=executable, chromium_sandbox=SANDBOX, args=ARGUMENTS
        )
        try:
            yield browser
        finally:
            await browser.close()


@contextmanager
def launch_browser_sync() -> Iterator[BlockingBrowser]:
    """The browser for scripts and tests without an event loop."""
    executable = require_program(CHROMIUM)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, chromium_sandbox=SANDBOX, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


async def save_screenshot(page: Page, test_id: str) -> None:
    """Save a screenshot of the failed test under screenshots/."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", test_id)
    await page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
