"""A new administrator creates, assigns, explains and removes what a game needs, with the mouse alone.

They know only the README and use what the screens offer: every step is a click on something visible, starting at the
setup link.
"""

from pathlib import Path

import pyotp
import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from gatehouse.audit.model import AuditOrigin
from tests.support.axe import axe_violations
from tests.support.guide_pictures import Camera
from tests.support.service import RunningService, running_service

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOGIN = "anna@studio.example"
PASSWORD = "correct horse battery"


class BrowserActions:
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

    async def expect_text(self, words: str) -> None:
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
        actions = BrowserActions(await context.new_page())
        await create_administrator(actions, service)
        await picture(actions.page, "first-steps")
        await create_project(actions, service)
        await create_permission_and_role(actions)
        await assign_role_to_noor(actions)
        await grant_role_to_group(actions)
        await check_explanation(actions, "Yes: Noor has user.kick in Sky Raiders", "Role referee: allow")
        await remove_role(actions)
        await check_explanation(actions, "No: Noor does not have user.kick in Sky Raiders")
        assert await axe_violations(actions.page) == []
        assert actions.complaints == []
    await context.close()


async def create_administrator(actions: BrowserActions, service: RunningService) -> None:
    secret = await service.services.accounts.setup.new_link(AuditOrigin(actor="test"))
    await actions.page.goto(f"{service.base_url}/setup?token={secret}")
    await actions.fill("Email", LOGIN)
    await actions.fill("Display name", "Anna")
    await actions.fill("Password", PASSWORD)
    await actions.click("Create administrator")
    await actions.click("Open the console")
    await actions.expect_text("Welcome, Anna")


async def create_project(actions: BrowserActions, service: RunningService) -> None:
    """A person without a second factor is led to set one up, and back to the form with what was typed."""
    await actions.click("Create a project")
    await actions.fill("Title", "Sky Raiders")
    await actions.click("Set up an authenticator app")
    secret = await actions.page.locator(".secret").text_content() or ""
    code = pyotp.TOTP("".join(secret.split())).at(service.clock.now())
    await actions.page.locator("[name=otp]").fill(code)
    async with actions.page.expect_navigation():
        await actions.click("Turn on")
    await actions.click("Done, I saved them")
    await actions.click("Create project")
    await actions.expect_text("Project created, with an application of the same name.")


async def create_permission_and_role(actions: BrowserActions) -> None:
    await actions.open("Applications", tab="Sky Raiders")
    await actions.tab("Permissions")
    await actions.click("New permission")
    await actions.fill("Permission", "user.kick")
    await actions.click("Save")
    await actions.tab("Roles")
    await actions.click("New role")
    await actions.fill("Name", "referee")
    await actions.click("Create role")
    await actions.click("Edit in the matrix")
    await actions.page.locator("table[role=grid] tbody td button").first.click()
    await actions.click("Review 1 change")
    await actions.click("Apply 1 change")
    await actions.expect_text("1 change applied")


async def assign_role_to_noor(actions: BrowserActions) -> None:
    await actions.open("People", tab="New person")
    await actions.fill("Email", "noor@players.example")
    await actions.page.get_by_text("Name, language and sign-in").click()
    await actions.page.locator("[name=nick]").fill("Noor")
    await actions.page.get_by_label("Don't invite yet").check()
    await actions.click("Add")
    await actions.open("Roles", tab="referee")
    await actions.tab("Members")
    await actions.click("Assign or remove")
    await actions.page.locator("select[name=who]").select_option(label="Everyone")
    await actions.page.locator("tr", has_text="Noor").locator("td button").first.click()
    await actions.click("Review 1 change")
    await actions.expect_text("1 person gains")
    await actions.click("Apply 1 change")
    await actions.expect_text("assigned, no expiry")


async def grant_role_to_group(actions: BrowserActions) -> None:
    await actions.open("Projects", tab="Sky Raiders")
    await actions.tab("Groups")
    await actions.page.get_by_role("textbox", name="Title", exact=True).fill("Staff")
    await actions.click("Create group")
    await actions.click("New condition")
    await actions.fill("Title", "At the studio")
    await actions.click("Add condition")
    await actions.page.get_by_placeholder("studio.example").fill("studio.example")
    await actions.expect_text("verified email at studio.example")
    await actions.click("Save")
    await actions.page.locator("main p.hint").get_by_role("link", name="Services").click()
    await actions.click("Continue")
    connect = actions.page.get_by_role("button", name="Connect", exact=True)

    async def expect_connect_waits(route: Route) -> None:
        await expect(connect).to_be_disabled()
        await route.continue_()

    await actions.page.route("**/services/*", expect_connect_waits, times=1)
    await actions.click("Add group")
    await actions.click("Connect")
    await actions.expect_text("Staff → referee")


async def check_explanation(actions: BrowserActions, *answer: str) -> None:
    await actions.open("Check")
    await actions.fill("Person", "noor")
    await actions.fill("Application", "50001")
    await actions.page.get_by_role("combobox", name="Permission").fill("user.kick")
    await actions.page.get_by_role("button", name="Check", exact=True).click()
    for words in answer:
        await actions.expect_text(words)


async def remove_role(actions: BrowserActions) -> None:
    await actions.open("Applications", tab="Sky Raiders")
    await actions.tab("People")
    await actions.page.locator("tr", has_text="Noor").locator("td button").first.click()
    await actions.click("Review 1 change")
    await actions.expect_text("1 person loses")
    await actions.click("Apply 1 change")
    await actions.expect_text("1 change applied")
