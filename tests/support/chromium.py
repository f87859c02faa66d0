"""A real Chromium for page tests, driven by Playwright.

All tests of a process share one: a context is what isolates them, and a start costs the most of a second. The
browser belongs to an event loop, so page tests and their fixtures run on that of the session.
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
# Playwright's word for --no-sandbox: as root Chromium refuses to start without it, a container may lack what
# the sandbox needs, and the only pages opened are our own.
SANDBOX: Final = False


@asynccontextmanager
async def launch_browser() -> AsyncIterator[Browser]:
    executable = require_program(CHROMIUM)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, chromium_sandbox=SANDBOX)
        try:
            yield browser
        finally:
            await browser.close()


@contextmanager
def launch_browser_sync() -> Iterator[BlockingBrowser]:
    """For scripts and tests without an event loop."""
    executable = require_program(CHROMIUM)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, chromium_sandbox=SANDBOX)
        try:
            yield browser
        finally:
            browser.close()


async def save_screenshot(page: Page, test_id: str) -> None:
    """Save what the person would have seen when the test failed, under screenshots/."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", test_id)
    await page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
