"""Photograph the console of the demo. Run as `python -m tools.console_pictures [words]`.

Every screen in light, dark and on a phone goes to screenshots/; those that docs/guides/console.md shows are written
beside it as well. With words only the screens whose names contain one of them.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Page, ViewportSize
from tests.support.chromium import SCREENSHOTS, launch
from tests.support.demo import running_demo
from tests.support.finding import ROOT

from gatehouse import logs
from gatehouse.demo.cast import BY_NAME, Secrets
from tools.screenshots import SHOTS, Shot

PICTURES: Final = ROOT / "docs" / "guides" / "pictures"
GAME: Final = "/console/applications/50001"
RAIDERS: Final = "/console/projects/sky_raiders"
NOOR: Final = BY_NAME["noor"].user_id
CHECK: Final = f"/console/access/check?user_id={NOOR}&application_id=50001&rule=user.kick"

SCREENS: Final = {
    "home": "/console",
    "people": "/console/people",
    "person": f"/console/people/{NOOR}",
    "projects": "/console/projects",
    "project": RAIDERS,
    "members": f"{RAIDERS}/members",
    "services": f"{RAIDERS}/services",
    "groups": f"{RAIDERS}/groups",
    "service-accounts": f"{RAIDERS}/service_accounts",
    "applications": "/console/applications",
    "application": GAME,
    "matrix": f"{GAME}/matrix",
    "users": f"{GAME}/users",
    "roles": "/console/roles",
    "role": "/console/roles/50001/referee",
    "access": "/console/access",
    "check": CHECK,
    "who": "/console/access/who?application_id=50001",
    "simulate": "/console/access/simulate",
    "games": "/console/games",
    "activity": "/console/activity",
    "settings": "/console/settings",
    "webhooks": "/console/settings/webhooks",
}
IN_THE_GUIDE: Final = ("home", "matrix", "users", "role", "check", "groups", "activity")


async def sign_in(page: Page, address: str, secrets: Secrets) -> None:
    await page.goto(f"{address}/console")
    await page.fill("[name=login]", BY_NAME["mara"].login)
    await page.fill("[name=password]", secrets.passwords["mara"])
    await page.press("[name=password]", "Enter")
    await page.wait_for_url("**/console")


async def photograph(browser: Browser, address: str, secrets: Secrets, shot: Shot, names: list[str]) -> None:
    width = 1280 if shot.width > shot.height else shot.width
    context = await browser.new_context(
        viewport=ViewportSize(width=width, height=max(shot.height, 800)),
        color_scheme="dark" if shot.dark else "light",
        reduced_motion="reduce",
        timezone_id="UTC",
        locale="en-GB",
    )
    page = await context.new_page()
    await sign_in(page, address, secrets)
    for name in names:
        await page.goto(f"{address}{SCREENS[name]}")
        await page.wait_for_load_state()
        await page.screenshot(path=SCREENSHOTS / f"console-{name}.{shot.name}.png", full_page=True)
        if shot.name == "light" and name in IN_THE_GUIDE:
            await page.screenshot(path=PICTURES / f"console-{name}.png")
    await context.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    logs.configure(dev=True, level="error")
    names = [name for name in SCREENS if not asked.words or any(word in name for word in asked.words)]
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gatehouse-pictures-") as place:
        async with running_demo(f"sqlite:///{place}/demo.db", Path(place)) as (address, secrets), launch() as browser:
            for shot in SHOTS:
                await photograph(browser, address, secrets, shot, names)
    print(f"{len(names) * len(SHOTS)} pictures in {SCREENSHOTS}")


if __name__ == "__main__":
    asyncio.run(main())
