"""What every form of the console has: problems at the field, both sides of a conflict, and undo."""

import re
from html import unescape

from tests.support.browser import HttpBrowser
from tests.support.console import ADA, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, post_form
from tests.support.service import RunningService

PAGE = f"/console/projects/{PROJECT}"
UNDO = re.compile(r'<form method="post" action="([^"]+)">(?:(?!</form>).)*>Undo</button></form>', re.DOTALL)
FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


async def undo(browser: HttpBrowser) -> None:
    """Press Undo in the message of the page."""
    assert browser.page is not None
    form = UNDO.search(browser.page.text)
    assert form is not None, "no undo"
    fields: dict[str, list[str]] = {}
    for name, value in FIELD.findall(form[0]):
        fields.setdefault(unescape(name), []).append(unescape(value))
    browser.page = await browser.client.post(unescape(form[1]), data=fields)


async def test_problem_is_said_at_the_field_which_has_the_focus(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    path = "/console/applications/new/web"
    await ada.get(path)
    page = await ada.post(path, name="Web", redirect_uris="nowhere")
    assert page.status_code == 400
    field = re.search(r'<textarea name="redirect_uris"[^>]*>', page.text)
    assert field is not None
    assert 'aria-invalid="true" aria-describedby="redirect_uris-wrong" autofocus' in field[0]
    assert '<span class="wrong" id="redirect_uris-wrong">' in page.text
    assert len(re.findall(r"<(?:input|textarea|select)[^>]* autofocus", page.text)) == 1


async def test_saved_form_can_be_undone_and_the_undo_too(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(PAGE)
    await olga.post(PAGE, title="Mind Games", description="New words", aliases="mg\r\nminds", tags="puzzle")
    await olga.follow()
    await undo(olga)
    page = await olga.follow()
    assert "<p>Change undone</p>" in page.text
    stored = (await studio.services.storage.projects.project(PROJECT)).project
    assert (stored.description, stored.aliases, stored.tags) == ("Puzzles and more", ("mg",), ())
    await undo(olga)
    stored = (await studio.services.storage.projects.project(PROJECT)).project
    assert (stored.description, stored.aliases, stored.tags) == ("New words", ("mg", "minds"), ("puzzle",))


async def test_undo_overwrites_nothing_that_was_saved_meanwhile(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, ada = await console_browsers(OLGA), await console_browsers(ADA)
    await olga.get(PAGE)
    await olga.post(PAGE, title="Mind Games", description="of Olga", aliases="mg")
    await olga.follow()
    await ada.get(PAGE)
    await ada.post(PAGE, title="Mind Games", description="of Ada", aliases="mg")
    await undo(olga)
    assert olga.page is not None
    assert olga.page.status_code == 409
    assert "Someone else changed this" in olga.page.text
    assert (await studio.services.storage.projects.project(PROJECT)).project.description == "of Ada"


async def test_save_that_changes_nothing_has_no_undo(console_browsers: ConsoleBrowsers) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(PAGE)
    await olga.post(PAGE, title="Mind Games", description="Puzzles and more", aliases="mg")
    assert UNDO.search((await olga.follow()).text) is None


async def test_undo_of_a_role_with_an_impact_needs_no_second_review(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, path = await console_browsers(ADA), f"/console/roles/{SHOP}/beta"
    await ada.get(path)
    await post_form(ada, path, description="", condition_mode="grant", do="apply")  # without its condition
    await ada.follow()
    await undo(ada)
    page = await ada.follow()
    assert "<p>Change undone</p>" in page.text
    role = (await studio.services.storage.permissions.application_models([SHOP]))[SHOP].roles["beta"]
    assert role.condition is not None
    assert role.description == "Sees what is new"


async def test_block_is_undone_by_unblocking(studio: RunningService, console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    await ada.get(f"/console/people/{PIA}/act/block")
    await ada.post(f"/console/people/{PIA}/act/block")
    await ada.follow()
    await undo(ada)
    assert "Undo" in (await ada.follow()).text
    user = await studio.services.storage.accounts.user(PIA)
    assert not user.blocked


async def test_new_ban_is_undone_but_a_changed_one_stays(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, path = await console_browsers(ADA), f"/console/people/{PIA}/bans"
    for text in ("Cheating", "Insults", "Threats"):
        await ada.get(path)
        await ada.post(path, public_text=text, application_id=str(SHOP))
        await ada.post(path, do="apply")
        page = await ada.follow()
        assert "Person banned" in page.text
        if text == "Cheating":
            await undo(ada)
            assert (await studio.services.storage.accounts.user(PIA)).bans == ()
    assert "Undo</button>" not in page.text  # it would lift the ban of "Insults" too
    (ban,) = (await studio.services.storage.accounts.user(PIA)).bans
    assert ban.public_text == "Threats"


async def test_forged_undo_leads_nowhere_else(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    for forged in ("AAAA", "x" * 4000, "eJyrVipILMlQslJQ0k9MTs4vzSvRT0nNSS1JVdJRUErLTM1JKQZKRsfWAgAZNg1f"):
        ada.client.cookies.set("gh_note", "saved", path="/")
        ada.client.cookies.set("gh_undo", forged, path="/")
        page = await ada.get(PAGE)
        assert page.status_code == 200
        assert UNDO.search(page.text) is None


async def test_condition_of_a_group_that_was_changed_meanwhile_is_shown_in_words(
    console_browsers: ConsoleBrowsers,
) -> None:
    olga, ada = await console_browsers(OLGA), await console_browsers(ADA)
    groups = (await olga.get(f"{PAGE}/groups")).text
    staff = re.search(r'href="(/console/projects/[^"]+/groups/[^"]+)">Staff<', groups)
    assert staff is not None
    path = f"{staff[1]}/conditions/0"
    rows = {"title": "Staff", "kind": ["all", "domain"], "depth": ["0", "1"], "do": "apply"}
    await olga.get(path)
    await ada.get(path)
    await post_form(ada, path, value=["", "ada.example"], **rows)
    page = await post_form(olga, path, value=["", "olga.example"], **rows)
    assert page.status_code == 409
    table = page.text.partition('class="clash"')[2].partition("</section>")[0]
    assert "ada.example" in table
    assert "olga.example" in table
