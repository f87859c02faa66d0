"""A new administrator creates, assigns, explains and removes what a game needs, with the mouse alone.

They know only the README and use what the screens offer: every step is a click on something visible, starting at the
setup link.
"""

from pathlib import Path

import pyotp
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from gatehouse.audit.model import AuditOrigin
from tests.support.axe import axe_violations
from tests.support.guide_pictures import Camera
from tests.support.service import RunningService, running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOGIN = "anna@studio.example"
PASSWORD = "correct horse battery"


class Hand:
    """Mouse and keyboard actions; `complaints` has the messages of the browser's console."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.set_default_timeout(8_000)
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)

    async def click(self, name: str) -> None:
        await self._named(name).click()

    async def open(self, name: str, *, tab: str = "") -> None:
        """Open an entry of the side navigation, and one of its tabs."""
        await self.page.locator("header.side nav").get_by_role("link", name=name, exact=True).click()
        if tab:
            await self.click(tab)

    async def tab(self, name: str) -> None:
        await self.page.locator("nav.tabs").get_by_role("link", name=name, exact=True).click()

    async def fill(self, label: str, text: str) -> None:
        await self.page.get_by_label(label).first.fill(text)

    async def sees(self, words: str) -> None:
        await expect(self.page.get_by_text(words).first).to_be_visible()

    def _named(self, name: str) -> Locator:
        button = self.page.get_by_role("button", name=name, exact=True)
        return button.or_(self.page.get_by_role("link", name=name, exact=True)).first


@pytest.mark.pictures("first-steps")
async def test_a_newcomer_gives_explains_and_revokes_by_mouse(
    sqlite_url: str, tmp_path: Path, browser: Browser, picture: Camera
) -> None:
    context = await browser.new_context(locale="en-GB")
    async with running_service(sqlite_url, tmp_path) as service:
        hand = Hand(await context.new_page())
        await comes_in(hand, service)
        await picture(hand.page, "first-steps")
        await makes_a_project(hand, service)
        await makes_a_rule_and_a_role(hand)
        await gives_it_to_noor(hand)
        await gives_it_to_a_group(hand)
        await asks_why(hand, "Yes: Noor has user.kick in Sky Raiders", "Role referee: allow")
        await takes_it_away(hand)
        await asks_why(hand, "No: Noor does not have user.kick in Sky Raiders")
        assert await axe_violations(hand.page) == []
        assert hand.complaints == []
    await context.close()


async def comes_in(hand: Hand, service: RunningService) -> None:
    secret = await service.services.setup.new_link(AuditOrigin(actor="test"))
    await hand.page.goto(f"{service.base_url}/setup?token={secret}")
    await hand.fill("Email", LOGIN)
    await hand.fill("Display name", "Anna")
    await hand.fill("Password", PASSWORD)
    await hand.fill("Confirm password", PASSWORD)
    await hand.click("Create administrator")
    await hand.click("Open the console")
    await hand.fill("Email", LOGIN)
    await hand.fill("Password", PASSWORD)
    await hand.click("Sign in")
    await hand.sees("Welcome, Anna")


async def makes_a_project(hand: Hand, service: RunningService) -> None:
    """A person without a second factor is led to set one up, and back."""
    await hand.click("Create a project")
    await hand.click("an authenticator app")
    secret = await hand.page.locator(".secret").text_content() or ""
    code = pyotp.TOTP("".join(secret.split())).at(service.clock.now())
    await hand.page.locator("[name=otp]").fill(code)
    async with hand.page.expect_navigation():
        await hand.click("Turn on")
    await hand.page.goto(f"{service.base_url}/console")
    await hand.click("Create a project")
    await hand.fill("Title", "Sky Raiders")
    await hand.click("Create project")
    await hand.sees("Project created, with an application of the same name.")


async def makes_a_rule_and_a_role(hand: Hand) -> None:
    await hand.open("Applications", tab="Sky Raiders")
    await hand.tab("Permissions")
    await hand.click("New permission")
    await hand.fill("Permission", "user.kick")
    await hand.click("Save")
    await hand.tab("Matrix")
    await hand.click("New role")
    await hand.fill("Name", "referee")
    await hand.click("Create role")
    await hand.click("Edit in the matrix")
    await hand.page.locator("table[role=grid] tbody td button").first.click()
    await hand.click("Review 1 change")
    await hand.click("Apply 1 change")
    await hand.sees("1 change applied")


async def gives_it_to_noor(hand: Hand) -> None:
    await hand.open("People", tab="New person")
    await hand.fill("Email", "noor@players.example")
    await hand.fill("Name", "Noor")
    await hand.page.get_by_label("Don't invite yet").check()
    await hand.click("Create account")
    await hand.open("Roles", tab="referee")
    await hand.tab("Members")
    await hand.click("Assign or remove")
    await hand.page.locator("select[name=who]").select_option(label="Everyone")
    await hand.page.locator("tr", has_text="Noor").locator("td button").first.click()
    await hand.click("Review 1 change")
    await hand.sees("1 person gains")
    await hand.click("Apply 1 change")
    await hand.sees("assigned, no expiry")


async def gives_it_to_a_group(hand: Hand) -> None:
    await hand.open("Projects", tab="Sky Raiders")
    await hand.tab("Groups")
    await hand.page.get_by_role("textbox", name="Title", exact=True).fill("Staff")
    await hand.click("Create group")
    await hand.click("New condition")
    await hand.fill("Title", "At the studio")
    await hand.click("Add condition")
    await hand.page.get_by_placeholder("studio.example").fill("studio.example")
    await hand.sees("verified email at studio.example")
    await hand.click("Save")
    await hand.page.locator("main p.hint").get_by_role("link", name="Services").click()
    await hand.click("Continue")
    await hand.click("Add group")
    await hand.click("Connect")
    await hand.sees("Staff → referee")


async def asks_why(hand: Hand, *answer: str) -> None:
    await hand.open("Access")
    await hand.fill("Person", "noor")
    await hand.fill("Application", "50001")
    await hand.page.get_by_role("combobox", name="Permission").fill("user.kick")
    await hand.page.get_by_role("button", name="Check", exact=True).click()
    for words in answer:
        await hand.sees(words)


async def takes_it_away(hand: Hand) -> None:
    await hand.open("Applications", tab="Sky Raiders")
    await hand.tab("People")
    await hand.page.locator("tr", has_text="Noor").locator("td button").first.click()
    await hand.click("Review 1 change")
    await hand.sees("1 person loses")
    await hand.click("Apply 1 change")
    await hand.sees("1 change applied")
