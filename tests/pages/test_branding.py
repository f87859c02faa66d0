"""A branded installation in a real browser: its name, logo and color everywhere, readable in light and dark."""

from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.async_api import Browser, Page, expect

from gatehouse.kernel.graphics import Color
from gatehouse.web.pages.branding import dark_shades, light_shades
from tests.support.axe import axe_violations, load_axe_with_every_page
from tests.support.console import ADA, apply_document, sign_in_to_console
from tests.support.guide_pictures import Camera
from tests.support.png import png
from tests.support.service import running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

YELLOW: Final = Color.parse("#ffd400")  # unreadable on white
NAVY: Final = Color.parse("#0a0a3c")  # invisible on black
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

LOGO: Final = """
<div id="logo"><svg width="56" height="56" viewBox="0 0 28 28"><circle cx="14" cy="14" r="13" fill="#e8590c"/>
<path d="M4 18q5-6 10 0t10 0" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round"/>
<circle cx="19" cy="9" r="3" fill="#fff"/></svg></div><style>body{margin:0}#logo{width:56px;height:56px}</style>
"""


def css_color(colour: Color) -> str:
    return f"rgb({colour.red}, {colour.green}, {colour.blue})"


async def open_and_check(page: Page, address: str) -> list[str]:
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if "Content Security" in message.text else None)
    await page.goto(address)
    return [*errors, *await axe_violations(page)]


@pytest.mark.parametrize(("accent", "scheme"), [(YELLOW, "light"), (NAVY, "dark")], ids=("light", "dark"))
async def test_every_page_shows_the_branding_and_stays_readable(
    sqlite_url: str, tmp_path: Path, browser: Browser, accent: Color, scheme: Literal["light", "dark"]
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
        await apply_document(service)
        page = await context.new_page()
        await load_axe_with_every_page(page)
        problems = [problem for path in PAGES for problem in await open_and_check(page, f"{service.base_url}{path}")]
        await page.goto(service.base_url)
        styles = await page.evaluate(SHOWN)
        assert (await page.title()).endswith("· Sky & Sea <Studio>")
        assert styles["logo"][:2] == (["", 90] if scheme == "light" else ["Sky & Sea <Studio>", 70])
        assert await page.get_by_role("banner").get_by_role("link", name="Sky & Sea <Studio>").count() == 1
        expected = light_shades(accent) if scheme == "light" else dark_shades(accent)
        assert styles["button"] == css_color(expected.button)
        await sign_in_to_console(service, page, ADA)
        problems += [
            problem for path in SCREENS for problem in await open_and_check(page, f"{service.base_url}{path}")
        ]
        assert problems == []
        picture = await page.request.get(styles["logo"][2])
        assert picture.headers["content-type"] == "image/png"
        assert picture.headers["x-content-type-options"] == "nosniff"
        assert "immutable" in picture.headers["cache-control"]
    await context.close()


@pytest.mark.pictures("branded-sign-in", "branded-settings")
async def test_a_studio_with_five_settings_looks_like_the_one_in_the_guide(
    sqlite_url: str, tmp_path: Path, page: Page, picture: Camera
) -> None:
    await page.set_content(LOGO)
    await page.locator("#logo").screenshot(path=tmp_path / "logo.png", omit_background=True)
    environment = {
        "GATEHOUSE__BRANDING__NAME": "Sky Studio",
        "GATEHOUSE__BRANDING__LOGO": str(tmp_path / "logo.png"),
        "GATEHOUSE__BRANDING__ACCENT": "#e8590c",
    }
    async with running_service(sqlite_url, tmp_path, environment=environment) as service:
        await apply_document(service)
        await page.goto(f"{service.base_url}/console")
        await expect(page.get_by_role("banner").get_by_role("link", name="Sky Studio")).to_be_visible()
        await picture(page, "branded-sign-in", width=760)
        await sign_in_to_console(service, page, ADA, "/console/settings/branding")
        await expect(page.frame_locator("iframe").get_by_text("Sky Studio").first).to_be_visible()
        await picture(page, "branded-settings", until=page.locator("section[aria-labelledby=brand-title]"))


async def test_preview_follows_what_is_typed_and_saves_nothing(sqlite_url: str, tmp_path: Path, page: Page) -> None:
    async with running_service(sqlite_url, tmp_path) as service:
        await apply_document(service)
        await sign_in_to_console(service, page, ADA, "/console/settings/branding")
        length, preview = await page.evaluate("history.length"), page.frame_locator("iframe[name=preview]")
        await page.get_by_label("Product name").fill("Sky Studio")
        await expect(preview.get_by_text("Sky Studio").first).to_be_visible()
        await page.get_by_label("Accent color").first.fill("#aa3311")
        await page.locator("select[name=screen]").select_option("colors")
        await expect(preview.get_by_text("#aa3311").first).to_be_visible()
        await page.locator("select[name=screen]").select_option("email")
        await expect(preview.get_by_role("heading", name="New sign-in to your account")).to_be_visible()
        card = preview.locator(".card")
        assert await card.evaluate("card => getComputedStyle(card).borderTopLeftRadius") == "12px"  # its own styles
        assert await page.evaluate("history.length") == length  # Back leaves the page
        assert service.services.settings.branding.name == "Gatehouse"
