"""Lists mark roles that give their holders nothing, with the part of the condition that fails, and banned people."""

import re

import pytest

from tests.support.console import ADA, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, apply_document, login_of
from tests.support.service import RunningService

MEMBERS = f"/console/roles/{SHOP}/cashier/members"
PROJECT_PAGE = f"/console/projects/{PROJECT}"
FAILS = re.compile(r'<p class="problem">([^<]*No effect: Pia does not meet[^<]*) <small>[^<]*vip[^<]*</small></p>')
GATED = """
applications:
  - application_id: $shop
    roles:
      cashier:
        condition: {tag: vip}
        condition_mode: require
        meta: {private_data: {store: {refund: {value: true}}}}
    users: {"$pia": {roles: [cashier]}}
  - application_id: 1
    roles:
      helper:
        condition: {tag: vip}
        condition_mode: require
        meta: {private_data: {project: {can_view_project: {value: true}}}}
memberships:
  - {id: $project, users: {"$pia": {roles: [helper]}}}
"""
GRANTED = """
projects:
  - title: Mind Games
    settings: {services: {"$shop": {groups: [{group_id: GROUP, roles: [cashier], action: grant}]}}}
"""


@pytest.mark.both_databases
async def test_role_members_project_members_and_group_members_are_marked(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada = await console_browsers(ADA)
    listed = (await ada.get(f"{PROJECT_PAGE}/groups?q=Test")).text
    (group,) = re.findall(rf'href="{PROJECT_PAGE}/groups/([0-9a-f]+)"', listed)
    await apply_document(studio, GATED + GRANTED.replace("GROUP", group))
    pages = (
        MEMBERS,
        f"{PROJECT_PAGE}/members",
        f"{PROJECT_PAGE}/groups/{group}",
        f"{PROJECT_PAGE}/groups/{group}/who",
    )
    for page in pages:
        text = (await ada.get(page)).text
        assert ("Pia" in text, bool(FAILS.search(text))) == (True, True), page
    table = (await ada.get(f"/console/applications/{SHOP}/users?q=Pia")).text
    assert re.search(r"condition not met\s*<small>[^<]*vip", table)
    file = (await ada.get(f"{MEMBERS}?format=csv")).text
    assert f"{PIA},Pia,,assigned_role,condition" in file
    await apply_document(studio, f'users: [{{user_id: "{PIA}", tags: [beta, vip]}}]')
    for page in pages:
        assert "No effect" not in (await ada.get(page)).text, page
    bans = f"{PROJECT_PAGE}/bans"
    await ada.get(bans)
    await ada.post(bans, user_id="Pia", end="day", do="apply")
    for page in (*pages, f"/console/applications/{SHOP}/users?q=Pia"):
        assert '<span class="badge bad">banned</span>' in (await ada.get(page)).text, page
    assert "No effect: Pia is banned." in (await ada.get(MEMBERS)).text


async def test_members_of_the_api_are_only_those_who_have_the_role(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, GATED)
    olga = await console_browsers(OLGA)
    page = (await olga.get(MEMBERS)).text
    assert FAILS.search(page)
    assert '"members": []' in page.replace("&#34;", '"')


async def test_simulation_says_that_a_banned_person_gains_nothing(console_browsers: ConsoleBrowsers) -> None:
    ada = await console_browsers(ADA)
    bans = f"/console/applications/{SHOP}/bans"
    await ada.get(bans)
    await ada.post(bans, user_id=login_of(PIA), end="day", do="apply")
    listed = (await ada.get(f"{PROJECT_PAGE}/groups?q=Staff")).text
    (group,) = re.findall(rf'href="{PROJECT_PAGE}/groups/([0-9a-f]+)"', listed)
    changes = ("give_role&role=cashier&end=none", f"group_member&group_id={group}&project_id={PROJECT}&way=add")
    for change in changes:
        page = (await ada.get(f"/console/access/simulate?change={change}&user_id={PIA}&application_id={SHOP}")).text
        assert "No effect: Pia is banned." in page, change
