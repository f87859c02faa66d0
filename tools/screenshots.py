"""Photograph every page in every state: light, dark and on a phone. Run as `python -m tools.screenshots [words]`.

With words only the states whose names contain one of them; `--lang de` for another language.
"""

import argparse
import asyncio
from dataclasses import dataclass
from typing import Final

from playwright.async_api import Browser, ViewportSize
from tests.support.chromium import SCREENSHOTS, launch
from tests.support.gallery import STATES, running_gallery

from gatehouse import logs


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    name: str
    width: int
    height: int
    dark: bool = False


SHOTS: Final = (
    Shot(name="light", width=1100, height=760),
    Shot(name="dark", width=1100, height=760, dark=True),
    Shot(name="phone", width=360, height=740),
)


async def photograph(browser: Browser, address: str, shot: Shot, states: list[str], lang: str) -> None:
    context = await browser.new_context(
        viewport=ViewportSize(width=shot.width, height=shot.height),
        color_scheme="dark" if shot.dark else "light",
        reduced_motion="reduce",
        timezone_id="UTC",
    )
    page = await context.new_page()
    for state in states:
        await page.goto(f"{address}/{state}?lang={lang}")
        await page.screenshot(path=SCREENSHOTS / f"{state}.{lang}.{shot.name}.png", full_page=True)
    await context.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--lang", default="en")
    asked = parser.parse_args()
    logs.configure(dev=True, level="error")
    states = [state for state in STATES if not asked.words or any(word in state for word in asked.words)]
    async with running_gallery() as address, launch() as browser:
        for shot in SHOTS:
            await photograph(browser, address, shot, states, asked.lang)
    print(f"{len(states) * len(SHOTS)} pictures in {SCREENSHOTS}")


if __name__ == "__main__":
    asyncio.run(main())
