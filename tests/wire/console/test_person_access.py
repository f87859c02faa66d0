"""What an administrator gives a person from the person's page: a role until a day, a group, a project."""

import re
from html import unescape

import pytest

from gatehouse.permissions.model.facts import Assignment
from gatehouse.permissions.model.rules import End, Scope
from tests.support.console import ADA, OLGA, PIA, PROJECT, SHOP, STUDIO, ConsoleBrowsers, apply_document
from tests.support.service import RunningService
from tests.support.staged_tables import record_of
from tests.wire.console.test_access import project_of

PERSON = f"/console/people/{OLGA}"
ACCESS = f"{PERSON}/access"


@pytest.mark.both_databases
async def test_role_is_assigned_until_friday_from_the_page_of_a_person(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    overview = (await ada.get(PERSON)).text
    assert f'data-value="{SHOP}/moderator"' in overview
    path = f"{ACCESS}/role?role=Moderator&project_id=mg&end=friday"
    review = await ada.get(path)
    assert review.status_code == 200
    assert "Assign moderator to Olga?" in review.text
    assert "1 person gains" in review.text
    assert "user.kick" in review.text
    assert 'datetime="2027-01-22T23:59:59Z"' in review.text  # the end of the next Friday: it is one today
    assert (await record_of(studio, SHOP, OLGA)).scopes == {}
    await ada.post(path)
    page = (await ada.follow()).text
    assert "Role assigned" in page
    assert f'<a href="/console/roles/{SHOP}/moderator">moderator</a>' in page
    end = End(expired=1_800_662_399)
    assert (await record_of(studio, SHOP, OLGA)).scopes[Scope(PROJECT)].roles == (
        Assignment(role="moderator", end=end),
    )
    again = await ada.get(path)
    assert "No changes." in again.text
    assert "Assign role</button>" not in again.text
    longer = (await ada.get(path.replace("friday", "week"))).text
    assert "Current end: " in longer


async def test_role_form_keeps_what_was_typed_and_says_what_is_wrong(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    for query, problem in (
        ("role=cashier&end=date", "Choose when it ends."),
        ("role=cashier&end=date&until=2027-01-14", "Choose a time in the future."),
        ("role=", "Fill in this field."),
        ("role=nothing", "No role called “nothing”."),
        ("role=cashier&project_id=nowhere", "No project called “nowhere”."),
    ):
        refused = await ada.get(f"{ACCESS}/role?{query}")
        assert (refused.status_code, problem in refused.text) == (400, True), query
        assert f'name="role" value="{query.partition("=")[2].partition("&")[0]}"' in refused.text


async def test_role_that_was_reviewed_is_not_saved_over_a_later_change(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, path = await console_browsers(ADA), f"{ACCESS}/role?role={SHOP}/moderator"
    await ada.get(path)
    await apply_document(
        studio, f'applications: [{{application_id: $shop, name: Shop, users: {{"{OLGA}": {{roles: [cashier]}}}}}}]'
    )
    refused = await ada.post(path)
    assert (refused.status_code, "Assign moderator to Olga?" in refused.text) == (409, True)
    assert [one.role for one in (await record_of(studio, SHOP, OLGA)).root.roles] == ["cashier"]
    await ada.post(path)
    assert (await ada.follow()).status_code == 200
    assert {one.role for one in (await record_of(studio, SHOP, OLGA)).root.roles} == {"cashier", "moderator"}


async def test_person_is_added_to_a_group_and_led_to_a_project(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    await ada.get(ACCESS)
    added = await ada.post(f"{ACCESS}/group", group_id="Testers")
    if added.status_code == 200:  # with an impact to review
        group_path = added.text.partition('action="/console/projects/')[2].partition('"')[0]
        added = await ada.post(f"/console/projects/{group_path}", do="apply")
    assert added.status_code == 303
    groups = {group.title: group.group_id for group in (await project_of(studio)).groups.values()}
    assert (await studio.services.storage.groups.group(groups["Testers"])).users == (PIA, OLGA)
    await ada.get(ACCESS)
    led = await ada.post(f"{ACCESS}/project", member_of="Mind Games")
    assert led.headers["location"] == f"/console/projects/{PROJECT}/members/{OLGA}"


async def test_data_of_a_person_is_exported_to_a_file(
    console_browsers: ConsoleBrowsers,
) -> None:
    ada = await console_browsers(ADA)
    path = f"/console/people/{PIA}/data"
    await ada.get(path)
    file = await ada.post(path)
    assert "pia@players.example" in file.text
    assert file.headers["content-disposition"] == f'attachment; filename="gatehouse-{PIA}.json"'
    pia = await console_browsers(PIA)
    assert (await pia.get(path)).status_code == 403


async def test_friday_ends_where_the_browser_is_unless_the_account_names_a_time_zone(
    console_browsers: ConsoleBrowsers,
) -> None:
    ada = await console_browsers(ADA)
    path = f"{ACCESS}/role?role=Moderator&end=friday"
    for zone, end, text in (
        ("America/Los_Angeles", "2027-01-23T07:59:59Z", "January 22, 2027, 11:59\u202fPM<"),
        ("Asia/Tokyo", "2027-01-22T14:59:59Z", "January 22, 2027, 11:59\u202fPM<"),
        ("Nowhere/Else", "2027-01-22T23:59:59Z", "11:59\u202fPM UTC<"),
    ):
        ada.client.cookies.set("gh_zone", zone, path="/console")
        review = (await ada.get(path)).text
        assert (f'datetime="{end}"' in review, text in review) == (True, True), zone
    await ada.get("/account")
    saved = await ada.post("/account/profile", nick="Ada", zoneinfo="Europe/Berlin")
    assert saved.status_code == 303
    ada.client.cookies.set("gh_zone", "Asia/Tokyo", path="/console")
    assert 'datetime="2027-01-22T22:59:59Z"' in (await ada.get(path)).text


GATED = """
      gated:
        description: Only for staff
        condition: {tag: staff}
        condition_mode: require
        meta: {private_data: {store: {edit: {value: true}}}}
"""


async def test_role_whose_condition_is_not_met_says_so_everywhere(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, STUDIO.replace("    roles:\n", f"    roles:{GATED}", 1))
    ada, words = await console_browsers(ADA), "No effect: Olga does not meet the condition of this role."
    path = f"{ACCESS}/role?role={SHOP}/gated&end=none"
    review = (await ada.get(path)).text
    assert words in review
    assert "Tag must be staff" in review
    assert "No one is affected" not in review
    await ada.post(path)
    page = (await ada.follow()).text
    assert "It has no effect yet" in page
    assert words in page
    simulated = await ada.get(
        f"/console/access/simulate?change=give_role&application_id={SHOP}&user_id={PIA}&role=gated&end=none"
    )
    assert "No effect: Pia does not meet the condition of this role." in simulated.text


async def test_end_of_a_role_is_changed_and_the_role_removed_in_its_row(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, access = await console_browsers(ADA), f"/console/people/{PIA}/access"
    row = (await ada.get(access)).text
    assert f'name="role" value="{SHOP}/moderator"' in row
    path = f"{access}/role?role={SHOP}/moderator&project_id=&end=three_days"
    await ada.get(path)
    await ada.post(path)
    assert (await record_of(studio, SHOP, PIA)).root.roles[0].end.expired == studio.clock.now() + 3 * 86_400
    remove = re.search(r'href="([^"]+end=remove)"', (await ada.get(access)).text)
    assert remove is not None
    confirm = await ada.get(unescape(remove[1]))
    assert "Remove moderator from Pia?" in confirm.text
    assert "1 person loses" in confirm.text
    await ada.post(unescape(remove[1]))
    assert "Role removed" in (await ada.follow()).text
    assert (await record_of(studio, SHOP, PIA)).root.roles == ()
