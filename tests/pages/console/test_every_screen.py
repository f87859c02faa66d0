"""Every screen of a console full of data, in a real browser: accessible, without errors or overflow."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page, ViewportSize

import gatehouse.demo
from gatehouse import __version__
from gatehouse.web.pages.translations import load_languages
from tests.support.axe import axe_violations
from tests.support.demo import SCREENS, TABS, Demo, sign_in_to_demo
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


# German screens: what reads the same in English must be a name, a value, or a word that both languages have.


NOT_READ: Final = {"script", "style", "code", "kbd", "pre", "textarea"}
VOID: Final = {"br", "col", "hr", "img", "input", "link", "meta", "wbr"}
READ_ATTRIBUTES: Final = ("title", "aria-label", "placeholder", "alt")
VALUE: Final = re.compile(
    r"[a-z_]\w*|\S*[^\w\s]\S*|\w+ ?[\d.]+|\d.*|.* UTC|\w{1,2}", re.DOTALL
)  # user_id, a@b.example, ES256, 1 MiB
SEPARATORS: Final = re.compile(r" · | \(|\)| → |: |, ")
# Names of products and algorithms, and descriptions that the service stores with what it creates.
NAMES: Final = {
    *("Apache", "Apple", "ASP.NET Core", "Caddy", "Discord", "Django", "EdDSA", "Epic Games", "Express", "FastAPI"),
    *("Flask", "Forgejo", "Gitea", "GitHub", "Google", "Grafana", "Microsoft", "Nextcloud"),
    *("Shell", "Spring Boot", "Steam", "Twitch", "TypeScript", "Unity", "openid email profile"),
    *("Central", "Gatehouse 1", "Gatehouse itself", "administrators", "projects and applications", "Full access"),
    *("Full access to the project", "Full access to the project except removing it", "Manage the group"),
    *("Manage the service", "Manage keys", "rules and roles of the application"),
    "Manage users' permissions in the application",
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
    texts = load_languages("console")
    alike = {text for key, text in texts["de"].texts.items() if text == texts["en"].texts.get(key)}
    patterns = (re.sub(r"\\\{\w+\\\}", ".+", re.escape(text)) for text in alike if not text.startswith("{"))
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
