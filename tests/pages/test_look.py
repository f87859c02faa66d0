"""Every page in every state, in a real browser: no errors, no overflow, no accessibility violation."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Request, ViewportSize, expect

from tests.support.axe import COLOR_RULES, axe_violations, load_axe_with_every_page
from tests.support.enter import enter_problems
from tests.support.gallery import ANNA, CODES, STATES, running_gallery
from tests.support.pseudo_locale import LANG as PSEUDO

pytestmark = pytest.mark.asyncio(loop_scope="session")

DESKTOP: Final = ViewportSize(width=1_280, height=800)
NARROW: Final = ViewportSize(width=320, height=640)  # WCAG 1.4.10
# Elements that overflow the page or their box.
TOO_WIDE: Final = """
() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  const width = document.documentElement.scrollWidth;
  const wide = width > innerWidth ? [`the page is ${width} wide`] : [];
  for (const element of document.querySelectorAll("main *:not(svg *)")) {
    const box = element.getBoundingClientRect();
    if (!element.closest(".away") && box.right > innerWidth + 0.5) wide.push(element.outerHTML.slice(0, 120));
  }
  return wide;
}
"""
Scheme = Literal["light", "dark"]
LIGHT_AND_DARK: Final[tuple[Scheme, Scheme]] = ("light", "dark")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gallery() -> AsyncIterator[str]:
    async with running_gallery() as address:
        yield address


def is_blocked(request: Request) -> bool:
    """Whether it was blocked, not canceled by a navigation."""
    return request.failure != "net::ERR_ABORTED"


def listen(page: Page) -> list[str]:
    """Collect the browser's errors; a blocked style, picture or script is an error."""
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "requestfailed",
        lambda request: errors.append(f"{request.url} failed") if is_blocked(request) else None,
    )
    page.on(
        "response",
        lambda response: errors.append(f"{response.status} {response.url}") if response.status >= 400 else None,
    )
    return errors


async def test_every_page_is_accessible_and_fits_a_small_phone(gallery: str, browser: Browser) -> None:
    """In English by all rules, in the other colors, and on a phone in the pseudo-locale, longer than German.

    Two windows, because a change of size takes longer than to open a page. The colors take turns.
    """
    context = await browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
    desktop, phone = await context.new_page(), await context.new_page()
    await load_axe_with_every_page(desktop)
    await phone.set_viewport_size(NARROW)
    errors, errors_on_phone = listen(desktop), listen(phone)
    scheme, other = LIGHT_AND_DARK
    problems: dict[str, list[str]] = {}
    for state in STATES:
        await desktop.goto(f"{gallery}/{state}")
        problems[f"{state}, {scheme}"] = await axe_violations(desktop)
        scheme, other = other, scheme
        await desktop.emulate_media(color_scheme=scheme)
        problems[f"{state}, {scheme}"] = await axe_violations(desktop, COLOR_RULES)
        await phone.goto(f"{gallery}/{state}?lang={PSEUDO}")
        problems[f"{state}, phone"] = await phone.evaluate(TOO_WIDE)
        problems[f"{state}, Enter"] = await enter_problems(phone)
        assert await phone.evaluate("document.documentElement.lang") == PSEUDO
    assert {state: found for state, found in problems.items() if found} == {}
    assert (errors, errors_on_phone) == ([], [])
    await context.close()


async def test_a_chosen_theme_wins_over_the_system(gallery: str, browser: Browser) -> None:
    context = await browser.new_context(color_scheme="light")
    page = await context.new_page()
    await page.goto(f"{gallery}/sign-in")
    background = "() => getComputedStyle(document.documentElement).backgroundColor"
    bright = await page.evaluate(background)
    await context.add_cookies([{"name": "gh_theme", "value": "dark", "url": gallery}])
    await page.reload()
    chosen = await page.evaluate(background)
    await context.clear_cookies()
    await page.emulate_media(color_scheme="dark")
    await page.reload()
    assert await page.evaluate(background) == chosen != bright
    await context.add_cookies([{"name": "gh_theme", "value": "light", "url": gallery}])
    await page.reload()
    assert await page.evaluate(background) == bright
    await context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_our_colour_is_the_one_that_shows(gallery: str, browser: Browser, scheme: Scheme) -> None:
    context = await browser.new_context(color_scheme=scheme)
    page = await context.new_page()
    await page.goto(f"{gallery}/forgot")
    colour = await page.get_by_role("button").evaluate("button => getComputedStyle(button).backgroundColor")
    assert colour == {"light": "rgb(31, 102, 193)", "dark": "rgb(43, 111, 206)"}[scheme]
    await context.close()


async def test_the_language_is_chosen_at_the_foot_of_the_page_and_remembered(gallery: str, page: Page) -> None:
    await page.goto(f"{gallery}/sign-in?keep=1%2B1")
    await page.get_by_role("link", name="Deutsch").click()
    await expect(page.get_by_role("heading", name="Anmelden")).to_be_visible()
    assert page.url.endswith("?keep=1%2B1&lang=de")
    await page.goto(f"{gallery}/forgot")
    await expect(page.get_by_role("heading", name="Passwort zurücksetzen")).to_be_visible()


async def test_features_that_need_javascript_are_hidden_without_it(gallery: str, browser: Browser) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{gallery}/sign-in")
    await expect(page.get_by_role("button")).to_have_text(["Sign in"])
    await page.goto(f"{gallery}/factor-passkey")
    await expect(page.get_by_text("Passkeys need JavaScript")).to_be_visible()
    await expect(page.get_by_role("button")).to_have_count(0)
    await page.goto(f"{gallery}/recovery-codes")
    await expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    await expect(page.locator("#codes code")).to_have_text(list(CODES))
    await context.close()


async def test_recovery_codes_are_copied_downloaded_and_printed(
    gallery: str, browser: Browser, tmp_path: Path
) -> None:
    context = await browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = await context.new_page()
    errors = listen(page)
    await page.goto(f"{gallery}/recovery-codes")
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == "\n".join(CODES)
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Download").click()
    saved = tmp_path / "codes.txt"
    await (await download.value).save_as(saved)
    assert saved.read_text() == "".join(f"{code}\n" for code in CODES)
    await page.emulate_media(media="print")
    await expect(page.get_by_text(f"Recovery codes for {ANNA}")).to_be_visible()
    await expect(page.get_by_role("button")).to_have_count(0)
    assert errors == []
    await context.close()


async def test_times_are_shown_in_the_readers_zone(gallery: str, browser: Browser) -> None:
    context = await browser.new_context(locale="en-GB", timezone_id="Asia/Tokyo")
    page = await context.new_page()
    await page.goto(f"{gallery}/account-full")
    entry = page.locator("#activity li", has_text="Account created").locator("time")
    assert await entry.get_attribute("datetime") == "2026-05-31T10:40:00Z"
    await expect(entry).to_have_text("31 May 2026 at 19:40")
    await context.close()


async def test_a_passkey_is_made_and_used_and_travels_as_an_ordinary_form(gallery: str, page: Page) -> None:
    errors = listen(page)
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("WebAuthn.enable")
    await devtools.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
        },
    )
    await page.goto(f"{gallery}/passkey-setup")
    await page.get_by_role("button", name="Create passkey").click()
    created = await record_form_data(page)
    assert created["name"] == "Firefox, Linux"
    assert created["csrf"] == "sample-csrf"
    await page.goto(f"{gallery}/sign-in")  # a passkey chosen from autofill needs no button
    used = await record_form_data(page)
    assert used["interaction"] == "sample-interaction"
    await page.goto(f"{gallery}/factor-passkey")
    await page.get_by_role("button", name="Use passkey").click()
    again = await record_form_data(page)
    assert again["method"] == "passkey"
    assert len({json.loads(sent["credential"])["id"] for sent in (created, used, again)}) == 1
    assert errors == []


async def test_a_passkey_that_fails_is_told_and_can_be_tried_again(gallery: str, page: Page) -> None:
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("WebAuthn.enable")
    await devtools.send(
        "WebAuthn.addVirtualAuthenticator",
        {"options": {"protocol": "ctap2", "transport": "internal", "automaticPresenceSimulation": True}},
    )
    await page.goto(f"{gallery}/factor-passkey")
    await page.get_by_role("button", name="Use passkey").click()
    await expect(page.get_by_text("The passkey was canceled or timed out")).to_be_visible()
    await expect(page.get_by_role("button", name="Use passkey")).to_be_enabled()


async def record_form_data(page: Page) -> dict[str, str]:
    await expect(page).to_have_title("arrived")
    sent: dict[str, str] = json.loads(await page.locator("pre").inner_text())
    return sent
