"""Counts what a person does to finish a task, so that a test can set a ceiling.

A tap is a click, a tap or the Enter key on anything that acts; a field is one that the person fills in or chooses
from. What the person only reads costs nothing, and neither does an address that something else opens for them: an
application, a game, a mail program.
"""

import re
from typing import Self

from playwright.async_api import Browser, BrowserContext, FilePayload, Locator, Page, ViewportSize, expect

from gatehouse.web.pages.translations import Translator, load_languages
from tests.support.service import RunningService

VIEWPORTS = {"phone": ViewportSize(width=390, height=844), "desktop": ViewportSize(width=1280, height=800)}
TAGS = re.compile(r"<[^>]+>")


class Count:
    """Of one task, in all browsers that it takes."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @property
    def taps(self) -> int:
        return sum(step.startswith("tap") for step in self.done)

    @property
    def fields(self) -> int:
        return sum(step.startswith("fill") for step in self.done)


class Person:
    """A person in front of one browser. Elements are found by the keys of their texts, in any language."""

    def __init__(self, service: RunningService, browser: Browser, page: Page, *, lang: str, device: str) -> None:
        self.service = service
        self.page = page
        self.lang = lang
        self.device = device
        self.text: Translator = load_languages("console")[lang]
        self.count = Count()
        self._browser = browser
        self._opened: list[BrowserContext] = [page.context]

    @classmethod
    async def arrive(cls, service: RunningService, browser: Browser, *, lang: str, device: str) -> Self:
        context = await open_context(browser, lang=lang, device=device)
        return cls(service, browser, await context.new_page(), lang=lang, device=device)

    async def on_another_device(self, device: str = "") -> Self:
        """Return the same person with another browser; what they do there counts too."""
        device = device or self.device
        context = await open_context(self._browser, lang=self.lang, device=device)
        other = type(self)(self.service, self._browser, await context.new_page(), lang=self.lang, device=device)
        other.count = self.count
        self._opened.append(context)
        return other

    async def leave(self) -> None:
        for context in self._opened:
            await context.close()

    # -- what counts ------------------------------------------------------------------------------------

    async def tap(self, element: Locator) -> None:
        self.count.done.append(f"tap {element}")
        await element.click()

    async def press_enter(self, element: Locator) -> None:
        self.count.done.append(f"tap Enter in {element}")
        await element.press("Enter")

    async def fill(self, element: Locator, value: str) -> None:
        self.count.done.append(f"fill {element}")
        await element.fill(value)

    async def choose(self, element: Locator, value: str) -> None:
        self.count.done.append(f"fill {element}")
        await element.select_option(value)

    async def attach(self, element: Locator, name: str, content: bytes) -> None:
        """Choose a file; it counts like a field."""
        self.count.done.append(f"fill {element}")
        await element.set_input_files(FilePayload(name=name, mimeType="image/png", buffer=content))

    async def pick(self, element: Locator) -> None:
        """Choose one of several; it counts like a field."""
        self.count.done.append(f"fill {element}")
        await element.click()

    # -- what does not ----------------------------------------------------------------------------------

    async def open(self, path: str) -> None:
        """Open an address that an application, a game or a mail program leads to."""
        await self.page.goto(path if "://" in path else f"{self.service.base_url}{path}")

    def words(self, key: str, **values: object) -> str:
        """Return a text of the pages or the console as the person reads it."""
        return TAGS.sub("", str(self.text(key, **values)))

    def button(self, key: str, **values: object) -> Locator:
        return self.page.get_by_role("button", name=self.words(key, **values), exact=True)

    def link(self, key: str, **values: object) -> Locator:
        return self.page.get_by_role("link", name=self.words(key, **values), exact=True)

    def field(self, key: str, **values: object) -> Locator:
        """Return the field with this label; hints may follow it."""
        return self.page.get_by_label(re.compile(rf"^{re.escape(self.words(key, **values))}"))

    async def sees(self, key: str, **values: object) -> None:
        """Check that the page shows a text."""
        await expect(self.page.get_by_text(self.words(key, **values)).first).to_be_visible()

    async def sees_heading(self, key: str, **values: object) -> None:
        await expect(self.page.get_by_role("heading", name=self.words(key, **values), exact=True)).to_be_visible()

    async def arrives_at(self, address: str) -> None:
        """Check that the browser ends at an address that starts like this."""
        await expect(self.page).to_have_url(re.compile(rf"^{re.escape(address)}"))


async def open_context(browser: Browser, *, lang: str, device: str) -> BrowserContext:
    context = await browser.new_context(
        viewport=VIEWPORTS[device],
        has_touch=device == "phone",
        locale={"en": "en-GB"}.get(lang, lang),
        timezone_id="Europe/Berlin",
    )
    context.set_default_timeout(10_000)
    return context
