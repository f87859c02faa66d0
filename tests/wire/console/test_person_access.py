"""What an administrator gives a person from the person's page: a role until a day, a group, a project."""

from tests.support.console import ADA, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers
from tests.support.service import RunningService
from tests.wire.console.test_access import project_of

ACCESS = f"/console/people/{OLGA}/access"


async def test_role_is_assigned_until_friday_from_the_page_of_a_person(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    await ada.get(ACCESS)
    review = await ada.post(f"{ACCESS}/role", application_id="Shop", role="Moderator", project_id="mg", end="friday")
    assert review.status_code == 200
    assert "<strong>moderator</strong>" in review.text
    done = await ada.post(f"/console/applications/{SHOP}/users/apply")
    assert f'href="{ACCESS}"' in done.text
    page = (await ada.get(ACCESS)).text
    assert "moderator" in page
    assert 'datetime="2027-01-23T00:00:00Z"' in page  # the end of the next Friday: it is one today
    for end, problem in (
        ({"end": "date"}, "choose when the role ends"),
        ({"end": "date", "until": "2027-01-14"}, "choose a day that is not over"),
    ):
        await ada.get(ACCESS)
        refused = await ada.post(f"{ACCESS}/role", application_id="Shop", role="cashier", **end)
        assert (refused.status_code, problem in refused.text) == (400, True)
        assert 'value="cashier"' in refused.text
    nothing = await ada.post(f"{ACCESS}/role", application_id="", role="")
    assert (nothing.status_code, "fill in this field" in nothing.text) == (400, True)


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
