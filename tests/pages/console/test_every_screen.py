"""Every screen of a console full of data, in a real browser: accessible, without errors or overflow."""

from typing import Final

import pytest
from playwright.async_api import Browser, Page, ViewportSize

from tests.support.axe import axe_violations
from tests.support.demo import SCREENS, Demo, sign_in_to_demo
from tests.support.guide_pictures import Camera, wider_than_window

pytestmark = pytest.mark.asyncio(loop_scope="session")

NARROW: Final = ViewportSize(width=360, height=740)
# The screens that each kind of person can open; administrators can open all.
EVERYBODYS: Final = {"home", "projects", "applications", "roles", "access", "simulate", "search", "gallery"}
RAIDERS: Final = {"project", "members", "services", "groups", "service-accounts"}
GAME: Final = {"application", "matrix", "users", "role", "check", "who"}
WIDE: Final = ViewportSize(width=1280, height=800)
SEEN_BY: Final = {
    "mara": set(SCREENS),  # administers everything
    "tobias": EVERYBODYS | RAIDERS | GAME | {"activity", "games"},  # owns the project
    "priya": EVERYBODYS | RAIDERS | GAME | {"activity", "games"},  # administers it, and develops a second application
    "emil": EVERYBODYS | {"application", "users", "check", "games"},  # manages users of the game
    "noor": EVERYBODYS | {"check"},  # a player, who can check their own permissions
}
OK: Final = 200
FORBIDDEN: Final = 403
IN_THE_GUIDES: Final = (
    *("console-home", "console-matrix", "console-users", "console-groups", "console-check", "console-activity"),
)
ENDS: Final = {  # where pictures of long pages end
    "home": "#numbers",
    "matrix": ".grid tbody:nth-of-type(4)",
    "activity": ".log > :nth-child(4)",
}


@pytest.mark.pictures(*IN_THE_GUIDES)
async def test_every_screen_is_available_exactly_to_those_with_the_right(
    browser: Browser, demo: Demo, picture: Camera
) -> None:
    for name, sees in SEEN_BY.items():
        context = await browser.new_context(locale="en-GB", timezone_id="UTC")
        page = await context.new_page()
        errors = browser_errors(page)
        await sign_in_to_demo(page, demo, name)
        if name == "mara":
            statuses = await open_every_screen(page, demo, picture)
        else:
            responses = {screen: await page.request.get(f"{demo[0]}{path}") for screen, path in SCREENS.items()}
            statuses = {screen: response.status for screen, response in responses.items()}
        assert (name, {screen for screen, status in statuses.items() if status == OK}) == (name, sees)
        assert set(statuses.values()) <= {OK, FORBIDDEN}
        assert errors == []
        await context.close()


def browser_errors(page: Page) -> list[str]:
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


async def open_every_screen(page: Page, demo: Demo, picture: Camera) -> dict[str, int]:
    """Open every screen and return its status; check accessibility and phone width, and take its picture."""
    statuses, problems = {}, list[str]()
    for name, path in SCREENS.items():
        response = await page.goto(f"{demo[0]}{path}")
        assert response is not None
        statuses[name] = response.status
        if f"console-{name}" in IN_THE_GUIDES:
            await take_picture(page, picture, name)
        problems += [f"{name}: {violation}" for violation in await axe_violations(page)]
        await page.set_viewport_size(NARROW)
        problems += [f"{name}: wider than a phone"] if await wider_than_window(page) else []
        await page.set_viewport_size(WIDE)
    assert problems == []
    return statuses


async def take_picture(page: Page, picture: Camera, name: str) -> None:
    if name == "activity":  # with one entry expanded, to show the previous value
        await page.goto(f"{page.url}?group=user_schema")
        await page.locator(".log summary").first.click()
    await picture(page, f"console-{name}", until=page.locator(ENDS[name]).last if name in ENDS else None)
