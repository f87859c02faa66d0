"""The roles x permissions matrix in a real browser: stage by mouse and keyboard, review, apply, undo."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.axe import axe_violations
from tests.support.console import ADA, OLGA, PIA, SHOP, STUDIO, ConsoleBrowsers, apply_document, sign_in_to_console
from tests.support.guide_pictures import Camera
from tests.support.service import RunningService
from tests.support.staged_tables import form_of, held_names, model_of, staged_edits

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = f"/console/applications/{SHOP}/matrix"
# More than a page of rules, in groups.
GROUPS = "".join(
    f"        g{n}: {{{', '.join(f'r{one:02}: {{value: false}}' for one in range(24))}}}\n" for n in range(3)
)
WIDE = STUDIO.replace("      private_data:\n", f"      private_data:\n{GROUPS}", 1)


def cell(page: Page, rule: str, role: str) -> Locator:
    row = page.locator(f"tr[data-row='{rule}']")
    index = {"beta": 0, "cashier": 1, "moderator": 2}[role]
    return row.locator("td").nth(index).get_by_role("button")


def review_button(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile(r"^Review \d+ change"))


@pytest.mark.both_databases
@pytest.mark.pictures("matrix-staged", "matrix-review")
async def test_a_change_is_staged_reviewed_applied_and_undone(
    service: RunningService, page: Page, picture: Camera
) -> None:
    await apply_document(service)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    await sign_in_to_console(service, page, OLGA, PAGE)
    kick = cell(page, "private_data.user.kick", "moderator")
    await kick.click()
    await expect(kick).to_have_text("Deny")
    await expect(review_button(page)).to_have_text("Review 1 change")
    await page.keyboard.press("ArrowDown")  # to mute, from here on by keyboard alone
    mute = cell(page, "private_data.user.mute", "moderator")
    await expect(mute).to_be_focused()
    await page.keyboard.press("Space")
    await page.keyboard.press("Enter")
    await expect(mute).to_have_text("Not set")
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("Space")
    await expect(cell(page, "private_data.user.mute", "cashier")).to_have_text("Allow")
    await expect(review_button(page)).to_have_text("Review 3 changes")
    await page.keyboard.press("Space")
    await page.keyboard.press("Space")  # back to the initial value: nothing is staged
    await expect(review_button(page)).to_have_text("Review 2 changes")
    await picture(page, "matrix-staged")
    assert await axe_violations(page) == []
    await review_button(page).click()
    await expect(page.get_by_role("heading", name="2 changes")).to_be_visible()
    person = page.get_by_role("row").filter(has_text="Pia")
    await expect(person).to_contain_text("user.kick")
    await expect(person).to_contain_text("user.mute")
    await picture(page, "matrix-review")
    assert await axe_violations(page) == []
    await page.get_by_role("button", name="Apply 2 changes").click()
    await expect(page.get_by_role("status")).to_contain_text("2 changes applied")
    assert "user.kick" not in (await held_names(service, SHOP, PIA))[PIA]
    assert await axe_violations(page) == []
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_role("heading", name="2 changes")).to_be_visible()
    await page.get_by_role("button", name="Back to the table").click()  # the inverse is staged, not saved
    await expect(review_button(page)).to_have_text("Review 2 changes")
    await expect(kick).to_have_text("Allow")
    await review_button(page).click()
    await page.get_by_role("button", name="Apply 2 changes").click()
    await expect(page.get_by_role("status")).to_contain_text("2 changes applied")
    assert {"user.kick", "user.mute"} <= (await held_names(service, SHOP, PIA))[PIA]
    await page.get_by_role("button", name="Back to the table").click()
    await expect(review_button(page)).to_be_hidden()
    assert errors == []


async def test_pending_changes_survive_search_paging_and_folding_and_can_be_undone(
    service: RunningService, page: Page
) -> None:
    await apply_document(service, WIDE)
    await sign_in_to_console(service, page, OLGA, PAGE)
    first = cell(page, "private_data.g0.r00", "cashier")
    await first.click()
    await page.get_by_role("link", name="Next").click()  # a different page of the same table: no warning
    await page.wait_for_url("**page=2**")
    await cell(page, "private_data.g2.r05", "cashier").click()
    await expect(review_button(page)).to_have_text("Review 2 changes")
    await page.get_by_label("Permission or description").fill("silence")
    await cell(page, "private_data.user.mute", "cashier").click()
    await expect(page.locator("tr[data-row]")).to_have_count(1)
    await expect(review_button(page)).to_have_text("Review 3 changes")
    await page.get_by_label("Permission or description").fill("g0")
    await expect(first).to_have_text("Allow")
    await expect(first).to_have_class("true staged")
    await page.get_by_role("button", name="g0").click()
    await expect(first).to_be_hidden()
    await page.reload()  # leaving warns, and returning restores everything
    await expect(first).to_be_hidden()
    await expect(review_button(page)).to_have_text("Review 3 changes")
    await page.get_by_text("Pending changes").click()
    await page.get_by_role("button", name="Discard: g2.r05 · cashier").click()
    await expect(review_button(page)).to_have_text("Review 2 changes")
    warned: list[str] = []

    async def stay(dialog: object) -> None:
        warned.append(dialog.type)  # type: ignore[attr-defined]
        await dialog.dismiss()  # type: ignore[attr-defined]

    page.on("dialog", stay)
    await page.get_by_role("link", name="Projects").click(no_wait_after=True)
    await expect(review_button(page)).to_be_visible()
    assert warned == ["beforeunload"]
    await page.get_by_role("button", name="Discard all").click()
    await expect(review_button(page)).to_be_hidden()
    await page.get_by_role("link", name="Projects").click()
    await page.wait_for_url("**/console/projects")
    assert warned == ["beforeunload"]


async def test_a_stale_apply_shows_the_other_change_and_loses_nothing(service: RunningService, page: Page) -> None:
    await apply_document(service)
    console_browsers = ConsoleBrowsers(service)
    await sign_in_to_console(service, page, OLGA, PAGE)
    await cell(page, "private_data.user.kick", "moderator").click()
    await review_button(page).click()
    await expect(page.get_by_role("button", name="Apply 1 change")).to_be_visible()
    ada = await console_browsers(ADA)
    await ada.get(PAGE)
    theirs = await ada.post(f"{PAGE}/review", text="user.kick,moderator,default")
    assert staged_edits((await ada.client.post(f"{PAGE}/apply", data=form_of(theirs.text))).text) == []
    await page.get_by_role("button", name="Apply 1 change").click()
    await expect(page.get_by_role("heading", name="Someone else changed this")).to_be_visible()
    await expect(page.get_by_role("alert").filter(has_text="Someone else").get_by_text("Ada")).to_be_visible()
    assert await axe_violations(page) == []
    await page.get_by_role("button", name="Back to the table").click()
    await expect(review_button(page)).to_have_text("Review 1 change")
    await expect(cell(page, "private_data.user.kick", "moderator")).to_have_text("Deny")
    await review_button(page).click()
    await page.get_by_role("button", name="Apply 1 change").click()
    await expect(page.get_by_role("status")).to_contain_text("1 change applied")
    meta = (await model_of(service, SHOP)).roles["moderator"].meta["private_data"]
    assert meta["user"]["kick"] == {"value": False}  # type: ignore[index]
    await console_browsers.close()


async def test_a_file_is_read_into_the_text_and_staged(service: RunningService, page: Page) -> None:
    await apply_document(service)
    await sign_in_to_console(service, page, OLGA, PAGE)
    await cell(page, "private_data.user.kick", "cashier").click()
    await page.get_by_text("Import", exact=True).click()
    lines = b"rule,role,value\nstore.edit,cashier,true\n"
    await page.get_by_label("Or a file").set_input_files({"name": "m.csv", "mimeType": "text/csv", "buffer": lines})
    await expect(page.get_by_label("CSV or JSON lines")).to_have_value(re.compile("store.edit"))
    await page.locator("form[data-staging-import]").get_by_role("button", name="Review").first.click()
    await expect(page.get_by_role("heading", name="2 changes")).to_be_visible()  # with the edits staged before
    await page.get_by_role("button", name="Discard: user.kick, cashier").click()
    await expect(page.get_by_role("heading", name="1 change")).to_be_visible()
    await page.get_by_role("button", name="Back to the table").click()
    await expect(review_button(page)).to_have_text("Review 1 change")
