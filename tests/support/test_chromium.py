"""Test the browser support that page tests depend on."""

from pathlib import Path

import pytest
from playwright.async_api import Page

from tests.support import chromium
from tests.support.capabilities import CHROMIUM, require_program
from tests.support.chromium import launch_browser_sync

pytest_plugins = ["pytester"]

A_FAILING_PAGE_TEST = """
async def test_it(page):
    await page.set_content("<p>Sign in</p>")
    assert await page.inner_text("p") == "Signed in"
"""


@pytest.mark.asyncio(loop_scope="session")
async def test_a_page_is_shown(page: Page) -> None:
    await page.set_content("<h1>Gatehouse</h1>")
    assert await page.inner_text("h1") == "Gatehouse"


@pytest.mark.asyncio(loop_scope="session")
async def test_scripts_run(page: Page) -> None:
    assert await page.evaluate("navigator.language") == "en-GB"


def test_a_browser_can_be_driven_without_an_event_loop() -> None:
    with launch_browser_sync() as browser:
        page = browser.new_page()
        page.set_content("<h1>Gatehouse</h1>")
        assert page.inner_text("h1") == "Gatehouse"


def test_a_failing_page_test_leaves_a_screenshot(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_program(CHROMIUM)
    monkeypatch.setattr(chromium, "SCREENSHOTS", tmp_path / "screenshots")
    pytester.makepyfile(test_signing_in=A_FAILING_PAGE_TEST)
    pytester.makeini(
        "[pytest]\n"
        "asyncio_mode = auto\n"
        "asyncio_default_fixture_loop_scope = function\n"
        "asyncio_default_test_loop_scope = session\n"
    )
    pytester.runpytest_inprocess("-p", "tests.conftest").assert_outcomes(failed=1)
    screenshot = tmp_path / "screenshots" / "test_signing_in.py-test_it.png"
    assert screenshot.read_bytes().startswith(b"\x89PNG")
