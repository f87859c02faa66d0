"""Projects in the console: the same permissions and commands as in the API."""

import re
from html import unescape

from tests.support.console import ADA, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, post_form
from tests.support.service import RunningService

PAGE = f"/console/projects/{PROJECT}"


async def test_a_stranger_signs_in_and_comes_to_the_page_they_asked_for(console_browsers: ConsoleBrowsers) -> None:
    signed_out_browser = await console_browsers(OLGA)
    signed_out_browser.client.cookies.clear()
    await signed_out_browser.get(f"{PAGE}?page=2")
    page = await signed_out_browser.follow()
    assert page.status_code == 200
    await signed_out_browser.post("/sign-in", login="olga@studio.example", password="correct horse battery staple")
    assert signed_out_browser.page is not None
    assert signed_out_browser.page.headers["location"] == f"{PAGE}?page=2"


async def test_everyone_sees_the_projects_their_rights_show_them(console_browsers: ConsoleBrowsers) -> None:
    for user_id, seen in ((ADA, True), (OLGA, True), (PIA, False)):
        browser_client = await console_browsers(user_id)
        assert ("Mind Games" in (await browser_client.get("/console/projects")).text) is seen
        assert (await browser_client.get(PAGE)).status_code == (200 if seen else 403)


async def test_a_project_is_saved_with_what_was_typed(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(f"{PAGE}/settings")
    await olga.post(
        f"{PAGE}/settings", title="Mind Games", description="New words", aliases="mg\r\nminds", tags="puzzle"
    )
    page = await olga.follow()
    assert "<p>Saved</p>" in page.text
    assert "New words" in page.text
    assert "&#34;aliases&#34;: [\n    &#34;mg&#34;," in page.text  # as JSON, like the API's response
    stored = (await studio.services.storage.projects.project(PROJECT)).project
    assert (stored.description, stored.aliases, stored.tags) == ("New words", ("mg", "minds"), ("puzzle",))
    assert "<p>Saved</p>" not in (await olga.get(f"{PAGE}/settings")).text  # shown once


async def test_a_stale_save_shows_the_other_change_and_overwrites_nothing(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, ada = await console_browsers(OLGA), await console_browsers(ADA)
    await olga.get(f"{PAGE}/settings")
    await ada.get(f"{PAGE}/settings")
    await ada.post(f"{PAGE}/settings", title="Mind Games", description="of Ada", aliases="mg")
    page = await olga.post(f"{PAGE}/settings", title="Mind Games", description="of Olga", aliases="mg")
    assert page.status_code == 409
    assert "Someone else changed this" in page.text
    assert "of Ada" in page.text
    assert "of Olga" in page.text
    assert (await studio.services.storage.projects.project(PROJECT)).project.description == "of Ada"
    await olga.post(f"{PAGE}/settings", title="Mind Games", description="of both", aliases="mg")
    assert (await studio.services.storage.projects.project(PROJECT)).project.description == "of both"


async def test_refused_form_keeps_the_typed_values(console_browsers: ConsoleBrowsers) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(f"{PAGE}/settings")
    page = await olga.post(f"{PAGE}/settings", title="Mind Games", description="kept", aliases="no spaces here")
    assert page.status_code == 400
    assert "no spaces here" in page.text
    assert "kept" in page.text


async def test_a_complaint_names_the_field_as_the_form_does(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    check = await ada.get("/console/access/check?application_id=abc")
    assert check.status_code == 400
    assert "No application called “abc”. Try its ID." in check.text
    sent = {
        "/console/applications/new/empty": {"name": "x" * 129},
        "/console/roles/new": {"application": str(SHOP), "name": "x" * 65},
        "/console/settings/webhooks/new": {"url": "https://127.0.0.1/", "events": "account"},
    }
    for path, fields in sent.items():
        await ada.get(path)
        response = await post_form(ada, path, **fields)
        assert response.status_code == 400, path
        match = re.search(r'<p role="alert" class="problem">([^<]*)</p>', response.text)
        assert match is not None, path
        assert match[1].strip().startswith(("Name: ", "URL: ")), (path, match[1])


async def test_an_empty_list_says_that_there_may_be_more_than_one_may_see(console_browsers: ConsoleBrowsers) -> None:
    pia = await console_browsers(PIA)
    for path in ("/console/projects", "/console/applications", "/console/roles"):
        page_text = (await pia.get(path)).text
        assert "Nothing here that you can see." in page_text, path
        assert " yet." not in page_text, path


async def test_a_form_of_another_browser_is_refused(console_browsers: ConsoleBrowsers) -> None:
    olga, ada = await console_browsers(OLGA), await console_browsers(ADA)
    olga.page = await ada.get(f"{PAGE}/settings")
    page = await olga.post(f"{PAGE}/settings", title="Stolen")
    assert page.status_code == 403


async def test_removing_a_project_says_what_breaks_and_wants_a_fresh_proof(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    page = await olga.get(f"{PAGE}/remove")
    assert "<strong>2</strong> applications stop working" in page.text
    assert (await olga.post(f"{PAGE}/remove", title="mind games")).status_code == 400
    await studio.clock.advance(601)
    stale = await olga.post(f"{PAGE}/remove", title="Mind Games")
    assert stale.headers["location"] == "/confirm?next=%2Fconsole%2Fprojects%2Fmind_games%2Fremove"
    assert not (await studio.services.storage.projects.project(PROJECT)).project.removed
    await olga.follow()
    await olga.post("/confirm", password="correct horse battery staple")
    await olga.follow()
    await olga.post(f"{PAGE}/remove", title="Mind Games")
    assert (await studio.services.storage.projects.project(PROJECT)).project.removed


async def test_a_list_is_a_file_that_no_spreadsheet_runs(console_browsers: ConsoleBrowsers) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(f"{PAGE}/settings")
    await olga.post(f"{PAGE}/settings", title="Mind Games", description="=1+1", aliases="mg")
    file = await olga.get("/console/projects?format=csv")
    assert file.headers["content-type"].startswith("text/csv")
    assert file.text.splitlines()[1] == "mind_games,Mind Games,'=1+1,2,2,no"


async def test_a_new_project_keeps_its_form_while_a_second_factor_is_set_up(
    console_browsers: ConsoleBrowsers,
) -> None:
    ada = await console_browsers(ADA)
    await ada.get("/console/projects/new")
    await ada.post("/console/projects/new", title="Räuber & Co", factor="totp")
    page = await ada.follow()
    kept = re.search(r'name="next" value="([^"]+)"', page.text)
    assert kept is not None
    form = await ada.get(unescape(kept[1]))
    assert 'name="title" value="Räuber &amp; Co"' in form.text
