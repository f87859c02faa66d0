"""The users x roles table: reviewed by person, applied as one save each, undone; without JavaScript."""

import re
from collections.abc import AsyncIterator, Sequence

import pytest

from gatehouse.permissions.model.facts import Assignment
from gatehouse.permissions.model.rules import NO_END, ROOT, End, Scope, application_scope
from tests.support.browser import HttpBrowser
from tests.support.console import (
    ADA,
    DEV,
    MAX,
    OLGA,
    PIA,
    PROJECT,
    SHOP,
    STUDIO,
    WIKI,
    ConsoleBrowsers,
    apply_document,
)
from tests.support.service import RunningService
from tests.support.staged_tables import (
    changes_between,
    form_of,
    held_names,
    predicted_changes,
    record_of,
    staged_edits,
)

PAGE = f"/console/applications/{SHOP}/users"
PEOPLE = (ADA, OLGA, DEV, MAX, PIA)
# A protected role, one with a condition, one that a group has, and a record with more than roles.
RICH = STUDIO.replace(
    "      beta:\n",
    "      boss: {protected: true, meta: {private_data: {store: {edit: {value: true}}}}}\n"
    "      insider: {condition: {domain: studio.example}, condition_mode: require,"
    " meta: {private_data: {store: {edit: {value: true}}}}}\n      beta:\n",
).replace(
    'users: {"$pia": {roles: [moderator]}}',
    'users: {"$pia": {roles: [moderator, {name: insider, ttl: 60}],'
    ' private_data: {user: {mute: {value: false}}, projectAccess: {$project: {applications: {"$wiki":'
    " {roles: [cashier]}}}}}}}",
)


@pytest.fixture
async def filled_console(service: RunningService) -> AsyncIterator[ConsoleBrowsers]:
    await apply_document(service, RICH)
    console_browsers = ConsoleBrowsers(service)
    yield console_browsers
    await console_browsers.close()


async def review_changes(browser_client: HttpBrowser, lines: str) -> str:
    await browser_client.get(PAGE)
    page = await browser_client.post(f"{PAGE}/review", text=lines)
    assert page.status_code == 200, page.text
    return page.text


async def apply_changes(browser_client: HttpBrowser, review: str, status: int = 200) -> str:
    page = await browser_client.client.post(f"{PAGE}/apply", data=form_of(review))
    assert page.status_code == status, page.text
    return page.text


def listed_rows(page: str) -> Sequence[str]:
    return re.findall(r'<tr data-row="(\d+)"', page)


async def test_review_predicts_what_apply_changes_and_undo_reverts(
    service: RunningService, filled_console: ConsoleBrowsers
) -> None:
    manager = await filled_console(OLGA)
    now = service.services.clock.now()
    stored, before = await record_of(service, SHOP, PIA), await held_names(service, SHOP, *PEOPLE)
    await manager.get(PAGE)
    review = await review_changes(
        manager, f"{PIA},moderator,,remove\n{PIA},cashier,,+3600\nolga@studio.example,cashier,,"
    )
    assert "1 of 3" in review
    assert "2 of 3" in review
    result = await apply_changes(manager, review)
    changed = changes_between(before, await held_names(service, SHOP, *PEOPLE))
    assert changed == {
        PIA: {"-moderator", "-user.kick", "+cashier", "+store.refund"},
        OLGA: {"+cashier", "+store.refund"},
    }
    assert predicted_changes(review) == changed
    saved = await record_of(service, SHOP, PIA)
    assert saved.root.roles == (
        Assignment(role="insider", end=End(ttl=60)),
        Assignment(role="cashier", end=End(expired=now + 3600)),
    )
    assert (saved.root.private_data, saved.version) == (stored.root.private_data, stored.version + 1)
    assert {scope: holdings for scope, holdings in saved.scopes.items() if scope != ROOT} == {
        scope: holdings for scope, holdings in stored.scopes.items() if scope != ROOT
    }
    undo = await manager.client.post(f"{PAGE}/review", data=form_of(result))
    await apply_changes(manager, undo.text)
    assert changes_between(before, await held_names(service, SHOP, *PEOPLE)) == {}
    assert set((await record_of(service, SHOP, PIA)).root.roles) == set(stored.root.roles)


async def test_those_who_were_saved_are_told_from_those_who_were_not(
    service: RunningService, filled_console: ConsoleBrowsers
) -> None:
    manager, ada = await filled_console(MAX), await filled_console(ADA)
    review = await review_changes(manager, f"{PIA},cashier,,\n{DEV},cashier,,")
    await apply_changes(ada, await review_changes(ada, f"{PIA},boss,,"))
    result = await apply_changes(manager, review, status=409)
    assert "1 person could not be changed" in result
    assert "1 change applied" in result
    assert [edit[0] for edit in staged_edits(result)] == [f"{PIA}/cashier"]
    assert (await record_of(service, SHOP, DEV)).root.roles == (Assignment(role="cashier"),)
    assert "cashier" not in {role.role for role in (await record_of(service, SHOP, PIA)).root.roles}


async def test_a_limited_role_says_who_will_find_no_seat_and_no_more_get_one(
    service: RunningService, filled_console: ConsoleBrowsers
) -> None:
    manager = await filled_console(OLGA)
    review = await review_changes(manager, "\n".join(f"{browser},cashier,," for browser in (ADA, OLGA, DEV, MAX)))
    assert "no seats left for 2 people" in review  # the assignment on the wiki is one of the three
    result = await apply_changes(manager, review, status=409)
    assert "2 people could not be changed" in result
    assert "The role has reached its user limit." in result
    swap = await review_changes(manager, f"{ADA},cashier,,remove\n{MAX},cashier,,")
    await apply_changes(manager, swap)
    assert (await record_of(service, SHOP, MAX)).root.roles == (Assignment(role="cashier", end=NO_END),)


async def test_unassignable_roles_are_not_offered_and_refused(
    service: RunningService, filled_console: ConsoleBrowsers
) -> None:
    manager, olga = await filled_console(MAX), await filled_console(OLGA)
    page = (await manager.get(PAGE)).text
    assert "In Mind Games" not in page  # they manage people of the application, not of the project
    assert "<option>boss</option>" not in page
    review = await review_changes(manager, f"{PIA},boss,,\n{PIA},cashier,{PROJECT},\n77,cashier,,\n{PIA},none,,")
    for words in (
        "you cannot assign or remove <strong>boss</strong>",
        "cannot be assigned in",
        "person not found",
        "<strong>none</strong> not found",
    ):
        assert words in review
    page = (await olga.get(f"{PAGE}?scope={PROJECT}")).text
    assert "In Mind Games" in page
    review = await review_changes(olga, f"{PIA},cashier,{PROJECT},2040-01-31")
    await apply_changes(olga, review)
    scopes = (await record_of(service, SHOP, PIA)).scopes
    assert scopes[application_scope(PROJECT, WIKI)].roles == (Assignment(role="cashier"),)  # unchanged
    assert scopes[Scope(PROJECT)].roles == (Assignment(role="cashier", end=End(expired=2_211_667_199)),)
    for user_id, status in ((DEV, 403), (PIA, 403)):
        assert (await (await filled_console(user_id)).get(PAGE)).status_code == status


async def test_cells_tell_how_a_role_is_held(filled_console: ConsoleBrowsers) -> None:
    page = (await (await filled_console(OLGA)).get(PAGE)).text
    assert listed_rows(page) == [PIA]
    row = page.partition(f'data-row="{PIA}"')[2]
    assert re.search(r'class="locked through"><span>by condition<', row)
    assert "inactive" in row  # insider: her address has a different domain
    assert "condition not met" in row


async def test_strangers_are_found_by_who_may_know_them(filled_console: ConsoleBrowsers) -> None:
    manager, olga, ada = await filled_console(MAX), await filled_console(OLGA), await filled_console(ADA)
    cases = (
        (manager, "", [PIA]),
        (manager, "who=all", [PIA]),
        (manager, "who=all&q=dev", []),
        (manager, f"who=all&q={DEV[-3:]}", []),
        (manager, f"q={DEV}", [DEV]),  # the nick is shown to people who know the id
        (manager, "q=dev@studio.example", []),
        (manager, "q=pia@players.example", []),  # a search by address finds no one they can see
        (manager, "q=PI", [PIA]),
        (olga, "who=all&q=dev", []),
        (olga, "q=Dev@studio.example", [DEV]),  # she manages the project
        (olga, "q=studio.example", []),
        (ada, "who=all", sorted(PEOPLE)),
        (ada, "who=all&q=studio.example", [ADA, DEV, MAX, OLGA]),
        (ada, "q=dev", []),
    )
    for browser_client, query, user_ids in cases:
        assert listed_rows((await browser_client.get(f"{PAGE}?{query}")).text) == user_ids, query
    assert [">Everyone<" in (await browser.get(PAGE)).text for browser in (manager, olga, ada)] == [
        False,
        False,
        True,
    ]
    by_address = f"dev@studio.example,cashier,,\nnobody@studio.example,cashier,,\n{OLGA},cashier,,"
    for browser_client, problems in ((manager, 2), (olga, 1)):
        review = await review_changes(browser_client, by_address)
        assert review.count("person not found") == problems
        assert (DEV in review) == (problems == 1)
        assert f"<small>{OLGA}</small>" in review


async def test_person_without_role_access_sees_only_role_names(filled_console: ConsoleBrowsers) -> None:
    manager, olga = await filled_console(MAX), await filled_console(OLGA)

    async def columns(browser_client: HttpBrowser, query: str = "") -> Sequence[str]:
        return re.findall(r'data-column="(\w+)"', (await browser_client.get(f"{PAGE}?{query}")).text)

    assert await columns(olga) == ["beta", "boss", "cashier", "insider", "moderator"]
    assert await columns(olga, "roles=money") == ["cashier"]
    assert await columns(manager) == ["beta", "cashier", "insider", "moderator"]
    assert await columns(manager, "roles=cash") == ["cashier"]
    assert await columns(manager, "roles=money") == []
    seats = [" of 3" in (await browser.get(PAGE)).text for browser in (manager, olga)]
    seats += [" of 3" in await review_changes(browser, f"{PIA},cashier,,") for browser in (manager, olga)]
    assert seats == [False, True, False, True]
    ada = await filled_console(ADA)
    await apply_changes(ada, await review_changes(ada, f"{PIA},boss,,"))
    assert "boss" in await columns(manager)  # a person they can see has it


async def test_a_file_that_comes_back_changes_nothing(filled_console: ConsoleBrowsers) -> None:
    olga = await filled_console(OLGA)
    await apply_changes(olga, await review_changes(olga, f"{PIA},cashier,{PROJECT},2040-01-31T10:00:00Z"))
    csv = (await olga.get(f"{PAGE}?format=csv")).text.splitlines()
    assert csv[0] == "user,role,scope,until,nick"
    assert f"{PIA},moderator,,,Pia" in csv
    assert f"{PIA},cashier,{PROJECT},2040-01-31T10:00:00Z,Pia" in csv
    whole = [line for line in csv if "/applications/" not in line]  # roles on a resource have their own page
    assert "No changes." in await review_changes(olga, "\n".join(whole))


async def test_a_table_without_roles_leads_to_making_one(filled_console: ConsoleBrowsers) -> None:
    page = (await (await filled_console(OLGA)).get(f"/console/applications/{WIKI}/users")).text
    assert f'href="/console/roles/new?application={WIKI}"' in page
