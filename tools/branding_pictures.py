"""Photograph a branded installation for docs/guides/branding.md. Run as `python -m tools.branding_pictures`."""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, ViewportSize
from tests.support.chromium import launch
from tests.support.console import ADA, come_in, furnish
from tests.support.service import running_service

from gatehouse import logs
from tools.console_pictures import PICTURES

BRANDED: Final = ("branded-sign-in", "branded-settings")
LOGO: Final = """
<div id="logo"><svg width="56" height="56" viewBox="0 0 28 28"><circle cx="14" cy="14" r="13" fill="#e8590c"/>
<path d="M4 18q5-6 10 0t10 0" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round"/>
<circle cx="19" cy="9" r="3" fill="#fff"/></svg></div><style>body{margin:0}#logo{width:56px;height:56px}</style>
"""
ACCENT: Final = "#e8590c"


async def draw(browser: Browser, path: Path) -> None:
    page = await browser.new_page()
    await page.set_content(LOGO)
    await page.locator("#logo").screenshot(path=path, omit_background=True)
    await page.close()


async def photograph(browser: Browser, place: Path) -> None:
    environment = {
        "GATEHOUSE__BRANDING__NAME": "Sky Studio",
        "GATEHOUSE__BRANDING__LOGO": str(place / "logo.png"),
        "GATEHOUSE__BRANDING__ACCENT": ACCENT,
        "GATEHOUSE__DATABASE__URL": f"sqlite:///{place}/gatehouse.db",
    }
    async with running_service(environment["GATEHOUSE__DATABASE__URL"], place, environment=environment) as service:
        await furnish(service)
        context = await browser.new_context(locale="en-GB", viewport=ViewportSize(width=760, height=640))
        page = await context.new_page()
        await page.goto(f"{service.base_url}/console")
        await page.screenshot(path=PICTURES / f"{BRANDED[0]}.png")
        await page.set_viewport_size(ViewportSize(width=1280, height=620))
        await come_in(service, page, ADA)
        await page.goto(f"{service.base_url}/console/settings/branding")
        await page.screenshot(path=PICTURES / f"{BRANDED[1]}.png")
        await context.close()


async def main() -> None:
    logs.configure(dev=True, level="error")
    with tempfile.TemporaryDirectory(prefix="gatehouse-branding-") as place:
        async with launch() as browser:
            await draw(browser, Path(place) / "logo.png")
            await photograph(browser, Path(place))
    print(f"{len(BRANDED)} pictures in {PICTURES}")


if __name__ == "__main__":
    asyncio.run(main())
