"""A branded installation in a real browser: its name, logo and colour everywhere, readable in light and dark."""

from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.async_api import Browser, Page

from gatehouse.kernel.colours import Colour
from gatehouse.web.branding import on_dark, on_light
from tests.support.axe import violations
from tests.support.console import ADA, come_in, furnish
from tests.support.pictures import png
from tests.support.service import running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

YELLOW: Final = Colour.parse("#ffd400")  # unreadable on white
NAVY: Final = Colour.parse("#0a0a3c")  # invisible on black
PAGES: Final = ("/", "/register", "/no-such-page")
SCREENS: Final = ("/account", "/console/settings/branding")
SHOWN: Final = """
() => {
  const logo = document.querySelector("a.brand img");
  const button = document.querySelector("main button[type=submit]:not(.outline, .link)");
  return {
    logo: [logo.getAttribute("alt"), logo.complete && logo.naturalWidth, logo.currentSrc],
    button: button && getComputedStyle(button).backgroundColor,
  };
}
"""


def written(colour: Colour) -> str:
    return f"rgb({colour.red}, {colour.green}, {colour.blue})"


async def looked_at(page: Page, address: str) -> list[str]:
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
    await page.goto(address)
    return [*complaints, *await violations(page)]


@pytest.mark.parametrize(("accent", "scheme"), [(YELLOW, "light"), (NAVY, "dark")], ids=("light", "dark"))
async def test_every_page_wears_the_brand_and_can_be_read(
    sqlite_url: str, tmp_path: Path, browser: Browser, accent: Colour, scheme: Literal["light", "dark"]
) -> None:
    for name, width in (("logo.png", 90), ("dark.png", 70)):
        (tmp_path / name).write_bytes(png(width, 30, accent))
    environment = {
        "GATEHOUSE__BRANDING__NAME": "Sky & Sea <Studio>",
        "GATEHOUSE__BRANDING__LOGO": str(tmp_path / "logo.png"),
        "GATEHOUSE__BRANDING__LOGO_DARK": str(tmp_path / "dark.png"),
        "GATEHOUSE__BRANDING__ACCENT": str(accent),
        "GATEHOUSE__BRANDING__WORDMARK": "true" if scheme == "dark" else "false",
    }
    context = await browser.new_context(locale="en-GB", color_scheme=scheme)
    async with running_service(sqlite_url, tmp_path, environment=environment) as service:
        await furnish(service)
        page = await context.new_page()
        troubles = [one for path in PAGES for one in await looked_at(page, f"{service.base_url}{path}")]
        await page.goto(service.base_url)
        shown = await page.evaluate(SHOWN)
        assert (await page.title()).endswith("· Sky & Sea <Studio>")
        assert shown["logo"][:2] == (["", 90] if scheme == "light" else ["Sky & Sea <Studio>", 70])
        assert await page.get_by_role("banner").get_by_role("link", name="Sky & Sea <Studio>").count() == 1
        expected = on_light(accent) if scheme == "light" else on_dark(accent)
        assert shown["button"] == written(expected.button)
        await come_in(service, page, ADA)
        troubles += [one for path in SCREENS for one in await looked_at(page, f"{service.base_url}{path}")]
        assert troubles == []
        picture = await page.request.get(shown["logo"][2])
        assert picture.headers["content-type"] == "image/png"
        assert picture.headers["x-content-type-options"] == "nosniff"
        assert "immutable" in picture.headers["cache-control"]
    await context.close()
