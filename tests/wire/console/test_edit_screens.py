"""What every form of the console has: problems at the field, both sides of a conflict, and undo."""

import re
from html import unescape

from tests.support.browser import HttpBrowser
from tests.support.console import ADA, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, post_form
from tests.support.service import RunningService

PROJECT_PAGE = f"/console/projects/{PROJECT}"
PAGE = f"{PROJECT_PAGE}/settings"
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
    ada, path = await console_browsers(ADA), f"/console/roles/{SHOP}/beta/settings"
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
    groups = (await olga.get(f"{PROJECT_PAGE}/groups")).text
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


async def test_problem_of_a_line_is_said_at_the_field_with_the_line(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    settings = f"/console/applications/{SHOP}/settings"
    client = f"/console/applications/{SHOP}/clients/web"
    await ada.get(f"/console/applications/{SHOP}/new_client")
    first = {"client_id": "web", "client_name": "Web", "scopes": "openid"}
    await ada.post(f"/console/applications/{SHOP}/new_client", **first, redirect_uris="https://shop.example/back")
    uris = "https://shop.example/back\r\nhttp://shop.example/"
    for page, suffix, kept, field, lines, line in (
        (PAGE, "", {"title": "Mind Games"}, "aliases", "mg\r\nno spaces", "no spaces"),
        (PAGE, "", {"title": "Mind Games"}, "tags", "puzzle, a-b", "a-b"),
        (PAGE, "", {"title": "Mind Games"}, "allowed_domains", "studio.example\r\nno domain", "no domain"),
        (settings, "", {"name": "Shop"}, "restricted_domains", "no domain", "no domain"),
        (settings, "/service", {}, "service_tags", "fine\r\nnot fine", "not fine"),
        (client, "", first, "redirect_uris", uris, "http://shop.example/"),
    ):
        await ada.get(page)
        shown = await post_form(ada, f"{page}{suffix}", **{**kept, field: lines})
        assert shown.status_code == 400, field
        said = re.search(rf'<span class="wrong" id="{field}-wrong">(.*?)</span></span>', shown.text, re.DOTALL)
        assert said is not None, field
        assert f"“{line}”: " in unescape(said[1]), field
        assert f"{field}[" not in shown.text, field


def clash(page: str) -> list[list[str]]:
    """The rows of the table that shows both sides of a conflict."""
    table = page.partition('class="clash"')[2].partition("</section>")[0]
    rows = re.findall(r"<tr.*?</tr>", table.partition("<tbody")[2].replace("\N{EN DASH}", ""), re.DOTALL)
    return [
        [unescape(cell).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)] for row in rows
    ]


async def test_conflict_of_allow_lists_shows_both_sides_and_saves_on_top(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, ada, path = await console_browsers(OLGA), await console_browsers(ADA), f"{PROJECT_PAGE}/members/lists"
    page = await olga.get(path)
    groups = re.findall(r'name="group" value="([0-9a-f]{24})"', page.text)  # Staff and Testers
    await ada.get(path)
    await post_form(ada, path, group=groups, listed=["allow", "disallow"], do="apply")
    page = await post_form(olga, path, group=groups, listed=["", "disallow"], do="apply")
    assert page.status_code == 409
    assert clash(page.text) == [["Staff", "Allow only", "No effect"]]
    await post_form(olga, path, group=groups, listed=["", "disallow"], do="apply")
    project = (await studio.services.storage.projects.project(PROJECT)).project
    assert (project.allow, project.disallow) == ((), (groups[1],))


async def test_conflict_of_a_service_shows_both_sides_by_group(console_browsers: ConsoleBrowsers) -> None:
    olga, ada, path = await console_browsers(OLGA), await console_browsers(ADA), f"{PROJECT_PAGE}/services/{SHOP}"
    await olga.get(path)
    page = await ada.get(path)
    staff, testers = re.findall(
        r'href="/console/projects/[^"]+/groups/([0-9a-f]{24})"', (await ada.get(f"{PROJECT_PAGE}/groups")).text
    )
    await ada.get(path)
    await post_form(ada, path, group=[staff], action=["grant"], role=["cashier"], do="apply")
    both = {"group": [staff, testers], "action": ["grant", "revoke"], "role": ["moderator", "beta"]}
    page = await post_form(olga, path, **both, do="apply")
    assert page.status_code == 409
    assert clash(page.text) == [["Staff", "assign: cashier", "assign: moderator"], ["Testers", "", "remove: beta"]]
    saved = await post_form(olga, path, **both, do="apply")
    assert saved.status_code == 303


async def test_conflict_of_a_member_shows_both_sides_by_place(console_browsers: ConsoleBrowsers) -> None:
    olga, ada, path = await console_browsers(OLGA), await console_browsers(ADA), f"{PROJECT_PAGE}/members/{PIA}"
    await olga.get(path)
    await ada.get(path)
    until = "2099-01-31T12:00"
    await post_form(ada, path, place=["project"], role=["project_administrator"], until=[until], do="apply")
    typed = {"place": [f"applications:{SHOP}"], "role": ["app_developer"], "until": [""]}
    page = await post_form(olga, path, **typed, do="apply")
    assert page.status_code == 409
    assert clash(page.text) == [
        ["on application Shop", "", "app_developer"],
        ["in the whole project", f"project_administrator (Until: {until})", ""],
    ]
    assert (await post_form(olga, path, **typed, do="apply")).status_code == 303
