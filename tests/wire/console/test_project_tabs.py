"""The tabs of a project in the console: members, applications, services, groups and service accounts."""

import csv
import re
from typing import Final

import pytest

from gatehouse.kernel.times import iso8601
from gatehouse.permissions.model.project import GrantAction
from tests.support.console import ADA, DEV, MAX, OLGA, PIA, PROJECT, SHOP, WIKI, ConsoleBrowsers, post_form
from tests.support.service import RunningService

PAGE: Final = f"/console/projects/{PROJECT}"
PATHS: Final = (
    "/members",
    "/members/new",
    "/members/lists",
    f"/members/{DEV}",
    f"/members/{DEV}/remove",
    "/applications",
    "/services",
    f"/services/{SHOP}",
    f"/services/{SHOP}/disconnect",
    "/groups",
    "/groups/{testers}",
    "/groups/{testers}/who",
    "/groups/{testers}/conditions/new",
    "/groups/{testers}/remove",
    "/service_accounts",
    "/service_accounts/new",
)
ACTS: Final = (
    (f"/members/{DEV}", {}),
    (f"/members/{DEV}/remove", {}),
    ("/members/lists", {}),
    ("/applications", {"name": "Mine"}),
    (f"/services/{SHOP}", {}),
    (f"/services/{SHOP}/disconnect", {}),
    ("/groups", {"title": "Mine"}),
    ("/groups/{testers}", {"title": "Mine"}),
    ("/groups/{testers}/access", {"add": PIA}),
    ("/groups/{testers}/remove", {}),
    ("/service_accounts/new", {"name": "Mine"}),
)


async def group_id(studio: RunningService, title: str) -> str:
    groups = (await studio.services.storage.projects.project(PROJECT)).groups
    return next(one for one, group in groups.items() if group.title == title)


async def test_every_project_path_is_forbidden_without_the_right(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    testers = await group_id(studio, "Testers")
    for user_id in (DEV, PIA):
        browser_client = await console_browsers(user_id)
        await browser_client.get("/console/projects")
        for path, fields in ACTS:
            response = await post_form(browser_client, PAGE + path.format(testers=testers), **fields)
            assert response.status_code == 403, (user_id, path)
        for path in PATHS:
            assert (await browser_client.get(PAGE + path.format(testers=testers))).status_code == 403, (user_id, path)


async def test_a_person_is_found_given_roles_with_an_end_and_removed(console_browsers: ConsoleBrowsers) -> None:
    olga = await console_browsers(OLGA)
    page = await olga.get(f"{PAGE}/members")
    assert re.search(r"Olga</a> <span class=\"badge good\">owner", page.text)
    assert "on application Shop" in page.text
    assert (
        "No one found." in (await olga.get(f"{PAGE}/members/new?q=ad")).text
    )  # people outside of the project only by their full address
    page = await olga.get(f"{PAGE}/members/new?q=Ada@studio.example")
    assert f"/members/{ADA}" in page.text
    path = f"{PAGE}/members/{ADA}"
    await olga.get(path)
    page = await post_form(olga, path, do="add")
    assert '<option value="project_administrator" selected>' in page.text
    scope = f"applications:{SHOP}"
    rows = {
        "role": ("app_developer", "app_users_manager"),
        "place": (scope, scope),
        "until": ("2030-01-31T12:00", ""),
    }
    wrong = await post_form(olga, path, role="app_developer", place="groups:nowhere", until="")
    assert wrong.status_code == 400
    await olga.get(path)
    await post_form(olga, path, **rows, do="apply")
    assert "January 31, 2030" in (await olga.follow()).text
    lines = (await olga.get(f"{PAGE}/members?q=Ada&format=csv")).text.splitlines()
    assert lines[1:] == [
        f"{ADA},Ada,app_developer,applications,{SHOP},2030-01-31T12:00",
        f"{ADA},Ada,app_users_manager,applications,{SHOP},",
    ]
    page = await olga.get(f"{path}/remove")
    assert "app_developer" in page.text
    await olga.post(f"{path}/remove")
    assert "Ada" not in (await olga.follow()).text
    page = await olga.get(f"{PAGE}/members/{OLGA}/remove")
    page = await olga.post(f"{PAGE}/members/{OLGA}/remove")
    assert page.status_code == 409
    assert "A project needs at least one owner." in page.text


async def test_a_service_gives_groups_roles_after_showing_who_gains(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga, testers, staff = (
        await console_browsers(OLGA),
        await group_id(studio, "Testers"),
        await group_id(studio, "Staff"),
    )
    page = await olga.get(f"{PAGE}/services")
    assert f'<option value="{WIKI}">' in page.text
    path = f"{PAGE}/services/{SHOP}"
    page = await olga.get(path)
    assert "not connected" in page.text
    rows = {
        "group": (testers, testers, staff),
        "action": ("grant", "grant", "revoke"),
        "role": ("cashier", "moderator", "cashier"),
    }
    page = await post_form(olga, path, **rows)
    assert "1 person gains" in page.text
    assert "store.refund" in page.text
    await post_form(olga, path, do="apply", **rows)
    page = await olga.follow()
    assert "Testers → cashier, moderator" in page.text
    assert "Staff → removed: cashier" in page.text
    stored = (await studio.services.storage.projects.project(PROJECT)).project.settings.services[SHOP]
    assert [(group.group_id, group.roles, group.action) for group in stored] == [
        (testers, ("cashier", "moderator"), GrantAction.GRANT),
        (staff, ("cashier",), GrantAction.REVOKE),
    ]
    await olga.get(f"{PAGE}/members/lists")
    barred = {"group": (testers, staff), "listed": ("disallow", "")}
    page = await post_form(olga, f"{PAGE}/members/lists", **barred)
    assert "1 person loses" in page.text
    await post_form(olga, f"{PAGE}/members/lists", do="apply", **barred)
    assert "Block overrides allow." in (await olga.follow()).text
    page = await olga.get(f"{PAGE}/groups/{testers}/remove")
    assert "The project blocks members of this group." in page.text
    page = await olga.post(f"{PAGE}/groups/{testers}/remove")
    assert page.status_code == 409
    await olga.get(f"{PAGE}/members/lists")
    await post_form(olga, f"{PAGE}/members/lists", do="apply", group=(testers,), listed=("",))
    page = await olga.get(f"{path}/disconnect")
    assert "1 person loses" in page.text
    await olga.post(f"{path}/disconnect")
    assert "No services connected." in (await olga.follow()).text


async def test_a_group_is_made_filled_by_list_and_condition_and_removed(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(f"{PAGE}/groups")
    await olga.post(f"{PAGE}/groups", title="Insiders")
    page = await olga.follow()
    path = f"{PAGE}/groups/{await group_id(studio, 'Insiders')}"
    assert "No one is listed yet." in page.text
    await olga.post(path, title="Insiders", description="Know more", tags="project\r\nvip")
    assert "Know more" in (await olga.follow()).text
    page = await olga.get(f"{path}?q=pia")  # she is in a second group of the project
    await post_form(olga, f"{path}/access", add=PIA)
    await olga.follow()
    await olga.get(f"{path}/conditions/new")
    rows = {"kind": ("any", "domain", "tag"), "value": ("", "studio.example", "beta"), "depth": ("0", "1", "1")}
    page = await post_form(olga, f"{path}/conditions/new", do="count", title="Near us", **rows)
    assert "<strong>5</strong> people match" in page.text
    refusal = await post_form(olga, f"{path}/conditions/new", title="", **rows)
    assert refusal.status_code == 400
    await post_form(olga, f"{path}/conditions/new", title="Near us", **rows)
    assert "email at studio.example, or tagged beta" in (await olga.follow()).text
    lines = (await olga.get(f"{path}/who?format=csv")).text.splitlines()
    assert lines[0] == "user_id,nick,listed,conditions"
    assert lines[1] == f"{ADA},Ada,no,Near us"
    assert lines[-1] == f"{PIA},Pia,yes,Near us"
    await olga.get(path)
    await post_form(olga, f"{path}/access", drop_condition="0")
    await olga.follow()
    await post_form(olga, f"{path}/access", drop=PIA)
    await olga.follow()
    assert "No members yet." in (await olga.get(f"{path}/who")).text
    await olga.get(f"{path}/remove")
    await olga.post(f"{path}/remove")
    assert "Insiders" not in (await olga.follow()).text


@pytest.mark.both_databases
async def test_group_manager_opens_the_group_without_access_to_the_project(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    testers = await group_id(studio, "Testers")
    olga, manager = await console_browsers(OLGA), await console_browsers(MAX)
    path = f"{PAGE}/groups/{testers}"
    assert (await manager.get(path)).status_code == 403
    await olga.get(f"{PAGE}/members/{MAX}")
    await post_form(
        olga,
        f"{PAGE}/members/{MAX}",
        role=("app_users_manager", "group_manager"),
        place=(f"applications:{SHOP}", f"groups:{testers}"),
        until=("", ""),
        do="apply",
    )
    await olga.follow()
    assert path in (await manager.get("/console/projects")).text
    page = await manager.get(path)
    assert "Pia" in page.text
    assert "Delete group" not in page.text
    assert (await manager.get(f"{path}/who")).status_code == 403
    await manager.get(f"{path}/conditions/new")
    rows = {"kind": ("all", "tag"), "value": ("", "beta"), "depth": ("0", "1")}
    page = await post_form(manager, f"{path}/conditions/new", do="count", title="Beta", **rows)
    assert "tagged beta" in page.text
    assert 'class="count"' not in page.text
    await post_form(manager, f"{path}/conditions/new", title="Beta", **rows)
    assert "tagged beta" in (await manager.follow()).text
    assert "No one found." in (await manager.get(f"{path}?q=olga@studio.example")).text
    assert "Olga" in (await manager.get(f"{path}?q={OLGA}")).text.partition("<main")[2]
    assert (await manager.get(f"{PAGE}/groups/{await group_id(studio, 'Staff')}")).status_code == 404
    assert (await manager.get(f"{PAGE}/members")).status_code == 403


async def test_a_service_account_gets_its_token_once_and_is_revoked(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(f"{PAGE}/service_accounts/new")
    page = await post_form(olga, f"{PAGE}/service_accounts/new", do="add", name="Builder")
    assert 'value="Builder"' in page.text
    fields = {"name": "Builder", "role": "app_developer", "place": f"applications:{SHOP}", "until": ""}
    refusal = await post_form(olga, f"{PAGE}/service_accounts/new", **fields, ip_ranges="nowhere")
    assert refusal.status_code == 400
    page = await post_form(
        olga, f"{PAGE}/service_accounts/new", **fields, ip_ranges="10.0.0.0/8\r\n192.0.2.0/24", days="30"
    )
    token = page.text.partition('id="secret"')[2].partition("<code>")[2].partition("</code>")[0]
    assert token.count(".") == 2
    page = await olga.get(f"{PAGE}/service_accounts")
    assert token not in page.text
    assert "only from 10.0.0.0/8, 192.0.2.0/24" in page.text
    assert "on application Shop" in page.text
    (account,) = await studio.services.storage.service_accounts.service_accounts(PROJECT)
    [row] = csv.DictReader((await olga.get(f"{PAGE}/service_accounts?format=csv")).text.splitlines())
    assert row == {
        "user_id": account.user_id,
        "project_id": PROJECT,
        "name": "Builder",
        "comment": "",
        "public_key": "",
        "ip_ranges": "10.0.0.0/8, 192.0.2.0/24",
        "created_by": OLGA,
        "created": iso8601(account.created_at),
        "revoked": "no",
        "version": "1",
        "roles": "app_developer (Shop)",
    }
    path = f"{PAGE}/service_accounts/{account.user_id}/revoke"
    await olga.get(path)
    await olga.post(path)
    assert "revoked" in (await olga.follow()).text
    (account,) = await studio.services.storage.service_accounts.service_accounts(PROJECT)
    assert account.revoked


async def test_a_new_application_stands_in_the_project(console_browsers: ConsoleBrowsers) -> None:
    olga = await console_browsers(OLGA)
    await olga.get(f"{PAGE}/applications")
    await olga.post(f"{PAGE}/applications", name="Forum")
    assert "Application created." in (await olga.follow()).text
    assert "Forum" in (await olga.get(f"{PAGE}/applications")).text
    page = await olga.post(f"{PAGE}/applications", name="Forum")
    assert page.status_code == 409
    assert 'value="Forum"' in page.text


@pytest.mark.parametrize("user_id", [ADA, OLGA], ids=("an administrator", "the owner"))
async def test_people_who_see_members_see_the_impact_before_saving(
    console_browsers: ConsoleBrowsers, user_id: str
) -> None:
    browser_client, path = await console_browsers(user_id), f"{PAGE}/members/{PIA}"
    await browser_client.get(path)
    typed = {"place": f"applications:{SHOP}", "role": "app_developer", "until": ""}
    page = await post_form(browser_client, path, **typed)
    assert "1 person gains" in page.text
    assert f"in {PROJECT} / applications / {SHOP}" in page.text
    again = await post_form(browser_client, path, **typed, do="edit")
    assert '<option value="app_developer" selected>' in again.text
    assert "Pia" not in (await browser_client.get(f"{PAGE}/members")).text  # nothing is saved before it is applied
    await browser_client.get(path)
    await post_form(browser_client, path, **typed, do="apply")
    assert "Pia" in (await browser_client.follow()).text
    await browser_client.get(path)
    page = await post_form(browser_client, path, place="project", role="project_administrator", until="")
    assert "1 person gains" in page.text
    assert "1 person loses" in page.text
