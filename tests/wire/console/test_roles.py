"""Roles in the console: the same permissions and commands as in the API, with the impact before Apply."""

import pytest

from tests.support.console import ADA, DEV, MAX, OLGA, PIA, SHOP, ConsoleBrowsers, post_form
from tests.support.service import RunningService

LIST = "/console/roles"
BETA = f"{LIST}/{SHOP}/beta"
MODERATOR = f"{LIST}/{SHOP}/moderator"
TAGGED = {"kind": ("all", "tag"), "value": ("", "beta"), "depth": ("0", "1")}
AT_STUDIO = {"kind": ("all", "domain"), "value": ("", "studio.example"), "depth": ("0", "1")}


async def test_everyone_sees_the_roles_their_rights_show_them(console_browsers: ConsoleBrowsers) -> None:
    for user_id, listed, role, members in (
        (ADA, True, 200, 200),
        (OLGA, True, 200, 200),
        (DEV, True, 200, 403),
        (MAX, False, 403, 403),  # assigning roles does not need read access to them
        (PIA, False, 403, 403),
    ):
        browser_client = await console_browsers(user_id)
        assert ("Keeps order" in (await browser_client.get(LIST)).text) is listed, user_id
        assert (await browser_client.get(BETA)).status_code == role, user_id
        assert (await browser_client.get(f"{BETA}/members")).status_code == members, user_id
        if not listed:
            await browser_client.get("/console/projects")
            assert (await post_form(browser_client, f"{BETA}/settings", **TAGGED)).status_code == 403
            assert (await post_form(browser_client, f"{BETA}/remove")).status_code == 403
            new = await post_form(browser_client, f"{LIST}/new", application=str(SHOP), name="mine")
            assert new.status_code == 403


async def test_a_list_of_roles_speaks_in_words(console_browsers: ConsoleBrowsers) -> None:
    olga = await console_browsers(OLGA)
    page = (await olga.get(f"{LIST}?q=beta")).text
    assert "tagged beta" in page
    assert "cashier" not in page
    lines = (await olga.get(f"{LIST}?format=csv")).text.splitlines()
    assert lines[0] == "role,description,application,application_id,protected,default,condition,seats,holders"
    assert lines[1:] == [
        f"beta,Sees what is new,Shop,{SHOP},no,no,tagged beta,0,0",
        f"cashier,Handles money,Shop,{SHOP},no,no,,0 of 3,0",
        f"moderator,Keeps order,Shop,{SHOP},no,no,,1,1",
    ]


async def test_a_role_is_made_and_its_condition_built_without_script(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(f"{LIST}/new")
    await olga.post(f"{LIST}/new", application=str(SHOP), name="Vip Club", description="Very important")
    page = await olga.follow()
    path = f"{LIST}/{SHOP}/Vip%20Club"
    assert "Role created" in page.text
    path = f"{path}/settings"
    assert "No condition" in (await olga.get(path)).text
    empty = {"kind": ("all",), "value": ("",), "depth": ("0",)}
    page = await post_form(olga, path, do="add:0", **empty)
    assert "Not complete yet: A condition has no value." in page.text
    nested = {
        "kind": ("all", "domain", "any", "tag", "ip"),
        "value": ("", "studio.example", "", "beta", "10.0.0.0/8"),
        "depth": ("0", "1", "1", "2", "2"),
    }
    page = await post_form(olga, path, do="count", **nested)
    assert "email at studio.example, and (tagged beta, or in network 10.0.0.0/8)" in page.text
    assert "At most <strong>4</strong> people match, depending on the IP address" in page.text
    page = await post_form(olga, path, do="remove:2", **nested)
    assert "email at studio.example</p>" in page.text
    assert "<strong>4</strong> people match" in page.text
    await post_form(olga, path, description="At home only", user_limit="5", condition_mode="require", **nested)
    page = await olga.follow()  # no one is affected yet, so there is nothing to confirm
    role = (await studio.services.storage.permissions.application_models([SHOP]))[SHOP].roles["vip club"]
    assert role.condition is not None
    assert role.condition.document == {
        "and": [{"domain": "studio.example"}, {"or": [{"tag": "beta"}, {"ip": "10.0.0.0/8"}]}]
    }
    assert (role.description, role.user_limit, role.condition_mode) == ("At home only", 5, "require")
    assert (
        await post_form(olga, path, do="add:0", kind=("all", "domain"), value=("",), depth=("0",))
    ).status_code == 400
    response = await post_form(olga, f"{LIST}/new", application=str(SHOP), name="vip club")
    assert response.status_code == 409
    broken = {"kind": ("all", "domain"), "value": ("", "no domain"), "depth": ("0", "1")}
    page = await post_form(olga, path, do="count", **broken)
    assert "Not complete yet: Verified email at: must be a domain such as studio.example." in page.text
    await olga.get(f"{path}?lang=de")
    page = await post_form(olga, path, do="count", **broken)
    assert "Noch nicht vollständig: Bestätigte E-Mail bei: Muss eine Domain wie studio.example sein.<" in page.text
    page = await post_form(olga, path, condition_mode="require", **broken)
    assert "Bestätigte E-Mail bei: Muss eine Domain wie studio.example sein.<" in page.text


async def test_a_save_shows_who_gains_and_who_loses_before_it_is_applied(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(f"{BETA}/settings")
    page = await post_form(olga, f"{BETA}/settings", description="Now for staff", **AT_STUDIO)
    assert "4 people gain" in page.text
    assert "1 person loses" in page.text
    assert "Pia" in page.text
    assert "badge.gold" in page.text
    models = studio.services.storage.permissions
    assert (await models.application_models([SHOP]))[SHOP].roles["beta"].description == "Sees what is new"
    response = await post_form(olga, f"{BETA}/settings", do="edit", description="Now for staff", **AT_STUDIO)
    assert "Now for staff" in response.text
    await post_form(olga, f"{BETA}/settings", do="apply", description="Now for staff", **AT_STUDIO)
    assert "<p>Saved</p>" in (await olga.follow()).text
    role = (await models.application_models([SHOP]))[SHOP].roles["beta"]
    assert role.condition is not None
    assert (role.description, role.condition.document) == ("Now for staff", {"domain": "studio.example"})
    assert role.meta == {"public_data": {"badge": {"gold": {"value": True}}}}  # the matrix is on a separate page


async def test_role_editor_without_access_to_people_can_save_without_seeing_the_impact(
    console_browsers: ConsoleBrowsers,
) -> None:
    dev = await console_browsers(DEV)
    page = await dev.get(f"{BETA}/settings")
    assert "people match" not in page.text
    assert "Matching people are hidden" in page.text
    page = await post_form(dev, f"{BETA}/settings", description="Sees what is new", **AT_STUDIO)
    assert "the impact is not shown" in page.text
    await post_form(dev, f"{BETA}/settings", do="apply", description="Sees what is new", **AT_STUDIO)
    assert "email at studio.example" in (await dev.follow()).text


async def test_a_stale_save_shows_the_other_condition_in_words(console_browsers: ConsoleBrowsers) -> None:
    olga, ada = await console_browsers(OLGA), await console_browsers(ADA)
    await olga.get(f"{BETA}/settings")
    await ada.get(f"{BETA}/settings")
    await post_form(ada, f"{BETA}/settings", do="apply", description="of Ada", **AT_STUDIO)
    page = await post_form(olga, f"{BETA}/settings", do="apply", description="of Olga", **TAGGED)
    assert page.status_code == 409
    for words in (
        "Someone else changed this",
        "of Ada",
        "of Olga",
        "email at studio.example",
        "tagged beta",
    ):
        assert words in page.text


async def test_role_members_are_listed_with_their_source(console_browsers: ConsoleBrowsers) -> None:
    olga = await console_browsers(OLGA)
    page = await olga.get(f"{BETA}/members")
    assert "Pia" in page.text
    assert "Meets the role" in page.text
    file = await olga.get(f"{MODERATOR}/members?format=csv")
    assert file.text.splitlines() == ["user_id,nick,until,path,without_effect", f"{PIA},Pia,,assigned_role,"]


@pytest.mark.both_databases
async def test_removing_a_role_says_what_breaks_and_wants_a_fresh_proof(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    page = await olga.get(f"{MODERATOR}/remove")
    assert "<strong>1</strong> assigned person loses it" in page.text
    assert "1 person loses" in page.text
    assert "user.kick" in page.text
    await studio.clock.advance(601)
    stale = await olga.post(f"{MODERATOR}/remove")
    assert stale.headers["location"].startswith("/confirm?next=")
    await olga.follow()
    await olga.post("/confirm", password="correct horse battery staple")
    await olga.follow()
    await olga.post(f"{MODERATOR}/remove")
    assert "Role deleted" in (await olga.follow()).text
    assert "moderator" not in (await studio.services.storage.permissions.application_models([SHOP]))[SHOP].roles


async def test_a_role_that_gatehouse_is_run_by_offers_no_removal_and_says_why(
    console_browsers: ConsoleBrowsers,
) -> None:
    ada = await console_browsers(ADA)
    built_in = (await ada.get(f"{LIST}/1/administrator")).text
    assert "it cannot be deleted" in built_in
    assert "Delete role" not in built_in
    assert "Delete role" in (await ada.get(f"{MODERATOR}/settings")).text
