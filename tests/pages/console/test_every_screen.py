"""Every screen of a console full of data, in a real browser: accessible, without errors, in reach on a phone."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, CDPSession, Page, ViewportSize

import gatehouse.demo
from gatehouse import __version__
from tests.support.axe import ALL_RULES, LOOK_RULES, axe_violations, load_axe_with_every_page
from tests.support.demo import SCREENS, TABS, Demo, sign_in_to_demo
from tests.support.enter import enter_problems
from tests.support.guide_pictures import Camera, wider_than_window
from tests.support.same_words import SAME_IN_GERMAN

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHONE: Final = ViewportSize(width=360, height=740)
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
MATRICES: Final = ("matrix", "users", "who")  # real tables, which scroll sideways
OUT_OF_REACH: Final = """() => [...document.querySelectorAll("main table :is(a, button, input, select, td), .stacks")]
  .filter((one) => one.getBoundingClientRect().right > document.querySelector("main").clientWidth
    || one.matches(".stacks") && one.scrollWidth > one.clientWidth)
  .map((one) => one.outerHTML)"""
SANDBOXED: Final = "frame is sandboxed"
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
    context = await browser.new_context(locale="en-GB", timezone_id="UTC", viewport=WIDE, reduced_motion="reduce")
    page = await context.new_page()
    errors = browser_errors(page)
    await load_axe_with_every_page(page)
    for name, sees in SEEN_BY.items():
        await context.clear_cookies()
        await sign_in_to_demo(page, demo, name)
        if name == "mara":
            statuses = await open_every_screen(page, demo, picture)
        else:
            responses = {screen: await page.request.get(f"{demo[0]}{path}") for screen, path in SCREENS.items()}
            statuses = {screen: response.status for screen, response in responses.items()}
        assert (name, {screen for screen, status in statuses.items() if status == OK}) == (name, sees)
        assert set(statuses.values()) <= {OK, FORBIDDEN}
        assert (name, errors) == (name, [])
    await context.close()


def browser_errors(page: Page) -> list[str]:
    """Collect errors, but not that the preview of the branding runs no scripts."""
    errors: list[str] = []
    page.on(
        "console",
        lambda message: (
            errors.append(message.text) if message.type == "error" and SANDBOXED not in message.text else None
        ),
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


async def open_every_screen(page: Page, demo: Demo, picture: Camera) -> dict[str, int]:
    """Open every screen once, check it in a wide window and on a phone, and return the statuses of SCREENS."""
    devtools = await page.context.new_cdp_session(page)
    statuses, problems = {}, list[str]()
    for name, path in SCREENS.items():
        response = await page.goto(f"{demo[0]}{path}")
        assert response is not None
        statuses[name] = response.status
        if f"console-{name}" in IN_THE_GUIDES:
            await take_picture(page, picture, name)
        problems += [f"{name}: {violation}" for violation in await axe_violations(page)]
        await change_to_phone(page, devtools)
        problems += await problems_on_phone(page, name, LOOK_RULES)
        await change_to_wide_window(page, devtools)
    await change_to_phone(page, devtools)
    for name, path in TABS.items():
        await page.goto(f"{demo[0]}{path}")
        problems += await problems_on_phone(page, name, ALL_RULES)
    await change_to_wide_window(page, devtools)
    assert problems == []
    return statuses


async def change_to_phone(page: Page, devtools: CDPSession) -> None:
    """Show the page on a phone, with touch and in dark colors."""
    await devtools.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    await page.emulate_media(color_scheme="dark")
    await page.set_viewport_size(PHONE)


async def change_to_wide_window(page: Page, devtools: CDPSession) -> None:
    await devtools.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size(WIDE)


async def problems_on_phone(page: Page, name: str, rules: Mapping[str, object]) -> list[str]:
    """Check rules, width and reach; axe expands collapsed sections."""
    problems = ["wider than the screen"] if await wider_than_window(page) else []
    problems += await axe_violations(page, rules)
    if name not in MATRICES:
        problems += [f"out of reach: {one}" for one in await page.evaluate(OUT_OF_REACH)]
    problems += await enter_problems(page)
    return [f"{name} on a phone: {problem}" for problem in problems]


async def take_picture(page: Page, picture: Camera, name: str) -> None:
    if name == "activity":  # with one entry expanded, to show the previous value
        await page.goto(f"{page.url}?group=user_schema")
        await page.locator(".log summary").first.click()
    await picture(page, f"console-{name}", until=page.locator(ENDS[name]).last if name in ENDS else None)


# German screens: what reads the same in English must be a name, a value, or a word that both languages have.


NOT_READ: Final = {"script", "style", "code", "kbd", "pre", "textarea"}
VOID: Final = {"br", "col", "hr", "img", "input", "link", "meta", "wbr"}
READ_ATTRIBUTES: Final = ("title", "aria-label", "placeholder", "alt")
VALUE: Final = re.compile(
    r"[a-z_]\w*|\S*[^\w\s]\S*|\w+ ?[\d.]+|\d[\d.:]*( ?\w{1,3})?|[0-9a-f]{8,}|\w{1,2}", re.DOTALL
)  # user_id, a@b.example, ES256, 1 MiB
SEPARATORS: Final = re.compile(r" · | \(|\)| → |: |, ")
# Names of products, algorithms, and what every installation has.
NAMES: Final = {
    *("Apache", "Apple", "ASP.NET Core", "Caddy", "Discord", "Django", "EdDSA", "Epic Games", "Express", "FastAPI"),
    *("Flask", "Forgejo", "Gitea", "GitHub", "Google", "Grafana", "Microsoft", "Nextcloud"),
    *("Shell", "Spring Boot", "Steam", "Twitch", "TypeScript", "Unity", "openid email profile"),
    *("Central", "Gatehouse 1"),
    *("Deutsch", "English"),  # each language is named in itself
    *("Demo", f"Gatehouse {__version__}", "= true"),
}


class ReadTexts(HTMLParser):
    """The texts of a page that people read; not those marked as English."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._open: list[tuple[str, bool]] = []  # the element, and whether it is read

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        is_english = tag != "html" and given.get("lang") == "en"
        is_read = self._is_read() and tag not in NOT_READ and not is_english and "aria-hidden" not in given
        if tag not in VOID:
            self._open.append((tag, is_read))
        if is_read:
            self.found |= {text for name in READ_ATTRIBUTES if (text := given.get(name))}

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._is_read():
            self.found.add(" ".join(data.split()))

    def _is_read(self) -> bool:
        return not self._open or self._open[-1][1]


async def texts_of_screen(page: Page, address: str) -> set[str]:
    parser = ReadTexts()
    parser.feed(await (await page.request.get(address)).text())
    return parser.found


async def test_german_screens_have_no_english_left(browser: Browser, demo: Demo) -> None:
    context = await browser.new_context()
    page = await context.new_page()
    await sign_in_to_demo(page, demo, "mara")
    patterns = (re.sub(r"\\\{\w+\\\}", ".+", re.escape(text)) for text in SAME_IN_GERMAN if not text.startswith("{"))
    same = re.compile("|".join(patterns))
    stored = "".join(file.read_text() for file in Path(gatehouse.demo.__file__).parent.glob("*.*"))
    screens = [f"{demo[0]}{path}" for name, path in (SCREENS | TABS).items() if name != "gallery"]
    read: dict[str, list[set[str]]] = {}
    for lang in ("en", "de"):
        await page.request.get(f"{demo[0]}/console?lang={lang}")
        read[lang] = [await texts_of_screen(page, screen) for screen in screens]
    left = {
        part: screen.removeprefix(demo[0])
        for screen, english, german in zip(screens, read["en"], read["de"], strict=True)
        for text in english & german
        for part in SEPARATORS.split(text.strip(" ·:"))
        if part and part not in NAMES and part not in stored
        if not VALUE.fullmatch(part) and not same.fullmatch(part)
    }
    await context.close()
    assert not left, "\n".join(map(" ".join, left.items()))
