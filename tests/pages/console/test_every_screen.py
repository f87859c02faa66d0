"""Every screen of a console that is full, in a real browser: usable, without complaints, and nothing sticks out."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize
from tools.console_pictures import SCREENS

from gatehouse.demo.cast import BY_NAME, Secrets
from tests.support.axe import violations
from tests.support.demo import running_demo

pytestmark = pytest.mark.asyncio(loop_scope="session")

Demo = tuple[str, Secrets]
NARROW: Final = ViewportSize(width=360, height=740)
# What of the console each kind of person comes to see; administrators see all of it.
EVERYBODYS: Final = {"home", "projects", "applications", "roles", "access", "simulate"}
RAIDERS: Final = {"project", "members", "services", "groups", "service-accounts"}
GAME: Final = {"application", "matrix", "users", "role", "check", "who"}
WIDE: Final = ViewportSize(width=1280, height=800)
SEEN_BY: Final = {
    "mara": set(SCREENS),  # administers everything
    "tobias": EVERYBODYS | RAIDERS | GAME | {"activity", "games"},  # owns the project
    "priya": EVERYBODYS | RAIDERS | GAME | {"activity", "games"},  # administers it, and develops another application
    "emil": EVERYBODYS | {"application", "users", "check", "games"},  # manages users of the game
    "noor": EVERYBODYS | {"check"},  # plays, and may ask about himself
}
OK: Final = 200
FORBIDDEN: Final = 403
WIDER_THAN_IT: Final = "() => document.documentElement.scrollWidth > innerWidth"


@pytest_asyncio.fixture(params=["sqlite", "postgres"], loop_scope="session")
async def demo(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Demo]:
    async with running_demo(request.getfixturevalue(f"{request.param}_url"), tmp_path) as running:
        yield running


async def come_in(page: Page, demo: Demo, name: str) -> None:
    address, secrets = demo
    await page.goto(f"{address}/console")
    await page.fill("[name=login]", BY_NAME[name].login)
    await page.fill("[name=password]", secrets.passwords[name])
    await page.press("[name=password]", "Enter")
    await page.wait_for_url("**/console")


async def test_every_screen_serves_everyone_as_their_rights_allow(browser: Browser, demo: Demo) -> None:
    for name, sees in SEEN_BY.items():
        context = await browser.new_context(locale="en-GB")
        page = await context.new_page()
        complaints = complaints_of(page)
        await come_in(page, demo, name)
        found = await walked(page, demo, closely=name == "mara")
        assert (name, {screen for screen, status in found.items() if status == OK}) == (name, sees)
        assert set(found.values()) <= {OK, FORBIDDEN}
        assert [one for one in complaints if "403" not in one] == []
        await context.close()


def complaints_of(page: Page) -> list[str]:
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


async def walked(page: Page, demo: Demo, *, closely: bool) -> dict[str, int]:
    """The status of every screen; looked at closely it is accessible, and fits on a phone."""
    found, troubles = {}, list[str]()
    for name, path in SCREENS.items():
        answer = await page.goto(f"{demo[0]}{path}")
        assert answer is not None
        found[name] = answer.status
        if closely:
            troubles += [f"{name}: {one}" for one in await violations(page)]
            await page.set_viewport_size(NARROW)
            troubles += [f"{name}: wider than a phone"] if await page.evaluate(WIDER_THAN_IT) else []
            await page.set_viewport_size(WIDE)
    assert troubles == []
    return found
