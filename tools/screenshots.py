"""Take screenshots of every page and of every console screen of the demo: light and dark, on a desktop and a phone.

Run `python -m tools.screenshots [words]`; words select screenshots whose names contain one of them, `--lang de`
selects another language.
"""

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Page, ViewportSize
from tests.support.chromium import SCREENSHOTS, launch_browser
from tests.support.demo import SCREENS, TABS, running_demo, sign_in_to_demo
from tests.support.gallery import STATES, running_gallery

from gatehouse import logs

ADMINISTRATOR: Final = "mara"  # of the demo
CONSOLE: Final = SCREENS | TABS


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    name: str
    width: int
    height: int
    dark: bool = False


SHOTS: Final = (
    Shot(name="light", width=1280, height=760),
    Shot(name="dark", width=1280, height=760, dark=True),
    Shot(name="phone", width=360, height=740),
    Shot(name="phone-dark", width=360, height=740, dark=True),
)


@asynccontextmanager
async def window(browser: Browser, shot: Shot) -> AsyncIterator[Page]:
    context = await browser.new_context(
        viewport=ViewportSize(width=shot.width, height=shot.height),
        color_scheme="dark" if shot.dark else "light",
        reduced_motion="reduce",
        timezone_id="UTC",
        locale="en-GB",
    )
    yield await context.new_page()
    await context.close()


async def capture_pages(browser: Browser, states: Iterable[str], lang: str) -> None:
    async with running_gallery() as address:
        for shot in SHOTS:
            async with window(browser, shot) as page:
                for state in states:
                    await page.goto(f"{address}/{state}?lang={lang}")
                    await page.screenshot(path=SCREENSHOTS / f"{state}.{lang}.{shot.name}.png", full_page=True)


async def capture_console(browser: Browser, screens: Iterable[str], lang: str, place: Path) -> None:
    async with running_demo(f"sqlite:///{place}/demo.db", place) as demo:
        for shot in SHOTS:
            async with window(browser, shot) as page:
                await sign_in_to_demo(page, demo, ADMINISTRATOR)
                await page.goto(f"{demo[0]}/console?lang={lang}")  # kept in a cookie
                for screen in screens:
                    await page.goto(f"{demo[0]}{CONSOLE[screen]}")
                    await page.screenshot(
                        path=SCREENSHOTS / f"console-{screen}.{lang}.{shot.name}.png", full_page=True
                    )


def name_filter(words: list[str]) -> Callable[[str], bool]:
    return lambda name: not words or any(word in name for word in words)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--lang", default="en")
    asked = parser.parse_args()
    logs.configure(dev=True, level="error")
    wanted = name_filter(asked.words)
    states, screens = list(filter(wanted, STATES)), [one for one in CONSOLE if wanted(f"console-{one}")]
    async with launch_browser() as browser:
        if states:
            await capture_pages(browser, states, asked.lang)
        if screens:
            with tempfile.TemporaryDirectory(prefix="gatehouse-screenshots-") as place:
                await capture_console(browser, screens, asked.lang, Path(place))
    print(f"{(len(states) + len(screens)) * len(SHOTS)} screenshots in {SCREENSHOTS}")


if __name__ == "__main__":
    asyncio.run(main())
