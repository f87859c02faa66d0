"""The roles x permissions matrix: reviewed, applied as one save, undone; without JavaScript."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.support.browser import HttpBrowser
from tests.support.builders import NOW
from tests.support.console import ADA, DEV, MAX, OLGA, PIA, SHOP, STUDIO, ConsoleBrowsers, apply_document
from tests.support.permission_builders import set_fields
from tests.support.service import RunningService
from tests.support.staged_tables import (
    changes_between,
    form_of,
    held_names,
    model_of,
    predicted_changes,
    staged_edits,
)
from tests.support.studio import secret_document

PAGE = f"/console/applications/{SHOP}/matrix"
PEOPLE = (ADA, OLGA, DEV, MAX, PIA)
# Parameters, a rule that only a role mentions, a protected rule: what a table of true and false could lose.
RICH = (
    STUDIO.replace("mute: {value: true}}}", 'mute: {value: true, params: "eu,us"}, odd: {value: true}}}')
    .replace("edit: {value: false, protected: false", "edit: {value: false, protected: true")
    .replace("users: {", 'users: {"$max": {roles: [cashier]}, ')
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


async def apply_changes(browser_client: HttpBrowser, review: str) -> str:
    page = await browser_client.client.post(f"{PAGE}/apply", data=form_of(review))
    assert page.status_code == 200, page.text
    return page.text


async def test_review_predicts_what_apply_changes_and_undo_reverts(
    service: RunningService, filled_console: ConsoleBrowsers
) -> None:
    olga = await filled_console(OLGA)
    stored, before = await model_of(service, SHOP), await held_names(service, SHOP, *PEOPLE)
    review = await review_changes(
        olga,
        "rule,role,value\nuser.kick,moderator,false\nuser.kick,cashier,true\npublic_data.badge.gold,cashier,true",
    )
    assert "3 changes" in review
    assert "1 person loses" in review
    result = await apply_changes(olga, review)
    changed = changes_between(before, await held_names(service, SHOP, *PEOPLE))
    assert changed == {MAX: {"+user.kick", "+badge.gold"}, PIA: {"-user.kick"}}
    assert predicted_changes(review) == changed
    after = await model_of(service, SHOP)
    assert after.schema.version == stored.schema.version + 1  # one save
    assert {key for key in after.roles if after.roles[key] != stored.roles[key]} == {"moderator", "cashier"}
    assert staged_edits(result) == []
    undo = await olga.client.post(f"{PAGE}/review", data=form_of(result))
    await apply_changes(olga, undo.text)
    model = await model_of(service, SHOP)
    assert {key: role.meta for key, role in model.roles.items()} == {
        key: role.meta for key, role in stored.roles.items()
    }
    assert changes_between(before, await held_names(service, SHOP, *PEOPLE)) == {}


async def test_values_not_shown_in_the_matrix_are_kept(
    service: RunningService, filled_console: ConsoleBrowsers
) -> None:
    olga = await filled_console(OLGA)
    page = (await olga.get(PAGE)).text
    assert "eu, us" in page
    assert "not in the schema" in page
    result = await apply_changes(olga, await review_changes(olga, "user.mute,moderator,false"))
    meta = (await model_of(service, SHOP)).roles["moderator"].meta
    assert meta["private_data"]["user"]["mute"] == {"value": False, "params": "eu,us"}
    assert meta["private_data"]["user"]["odd"] == {"value": True}
    warned = await review_changes(olga, "user.mute,moderator,default")
    assert "parameters are removed too" in warned
    result = await apply_changes(olga, warned)
    assert "mute" not in (await model_of(service, SHOP)).roles["moderator"].meta["private_data"]["user"]
    undo = await olga.client.post(f"{PAGE}/review", data=form_of(result))
    await apply_changes(olga, undo.text)
    meta = (await model_of(service, SHOP)).roles["moderator"].meta
    assert meta["private_data"]["user"]["mute"] == {"value": False, "params": "eu,us"}


async def test_a_stale_apply_shows_the_other_change_and_keeps_what_is_staged(
    service: RunningService, filled_console: ConsoleBrowsers
) -> None:
    olga, ada = await filled_console(OLGA), await filled_console(ADA)
    review = await review_changes(olga, "user.kick,moderator,false")
    await apply_changes(ada, await review_changes(ada, "user.kick,moderator,default\nstore.refund,cashier,false"))
    stale = await olga.client.post(f"{PAGE}/apply", data=form_of(review))
    assert stale.status_code == 409
    assert "Someone else changed this" in stale.text
    assert "<strong>Ada</strong>" in stale.text
    assert "private_data.store.refund" in stale.text  # also what does not conflict with her edit
    assert [edit[:3] for edit in staged_edits(stale.text)] == [["private_data.user.kick/moderator", "true", "false"]]
    roles = (await model_of(service, SHOP)).roles
    assert "kick" not in roles["moderator"].meta["private_data"]["user"]
    await apply_changes(olga, stale.text)
    roles = (await model_of(service, SHOP)).roles
    assert roles["moderator"].meta["private_data"]["user"]["kick"] == {"value": False}
    assert roles["cashier"].meta["private_data"]["store"]["refund"] == {"value": False}


async def test_invalid_changes_are_reported_in_the_review_and_skipped(
    service: RunningService, filled_console: ConsoleBrowsers
) -> None:
    olga = await filled_console(OLGA)
    review = await review_changes(
        olga, "store.edit,cashier,true\nno.such,cashier,true\nuser.kick,no_one,true\nuser.kick,cashier,true"
    )
    assert "is protected, and <strong>cashier</strong> is not" in review
    assert "permission not found" in review
    assert "role <strong>no_one</strong> not found" in review
    result = await apply_changes(olga, review)
    assert len(staged_edits(result)) == 3
    assert set((await model_of(service, SHOP)).roles["cashier"].meta["private_data"]) == {"store", "user"}
    unread = await olga.post(f"{PAGE}/review", text="user.kick,cashier,perhaps")
    assert unread.status_code == 400
    assert "line 1: use allow, deny or default" in unread.text
    assert "user.kick,cashier,perhaps" in unread.text


async def test_rights_are_those_of_the_schema_and_of_who_may_see_what_people_hold(
    filled_console: ConsoleBrowsers,
) -> None:
    for user_id, status in ((DEV, 200), (MAX, 403), (PIA, 403)):
        assert (await (await filled_console(user_id)).get(PAGE)).status_code == status
    dev = await filled_console(DEV)
    await dev.get(PAGE)
    review = (await dev.post(f"{PAGE}/review", row="user.kick", column="moderator", value="false")).text
    assert "Names are hidden" in review
    assert PIA not in review
    await apply_changes(dev, review)
    forged = await (await filled_console(MAX)).post(f"{PAGE}/review", text="user.kick,moderator,true")
    assert forged.status_code == 403


async def test_schema_editor_without_read_access_learns_nothing_of_other_saves(
    service: RunningService, filled_console: ConsoleBrowsers
) -> None:
    """The schema, its versions and the log are hidden from them, so stale saves and forms reveal nothing either."""
    dev, pia = await filled_console(DEV), await filled_console(PIA)
    await apply_changes(dev, await review_changes(dev, "user.mute,moderator,false"))
    stale = '[["private_data.user.kick/cashier","default","true",0,"user.kick","cashier"]]'
    login = f"/console/applications/{SHOP}/rules/login"
    for reads in (False, True):
        secret_data = secret_document("canModifySchema", *(["canReadSchema"] if reads else []))
        await service.services.storage.user_records.edit_record(SHOP, PIA, set_fields(secret_data=secret_data), NOW)
        for form in (login, f"/console/applications/{SHOP}/rules/private_data.user.kick"):
            page = (await pia.get(form)).text
            assert ("Handles money" in page) == reads  # the title of a different role
        restore = await pia.client.get(f"/console/applications/{SHOP}/versions/1/restore")
        assert restore.status_code == (200 if reads else 403)
        fields = {"csrf": form_of(page)["csrf"], "edits": stale}
        review = await pia.client.post(f"{PAGE}/review", data=fields)
        assert "Someone else changed this" in review.text
        for detail in ("<strong>Dev</strong>", "private_data.user.mute"):
            assert (detail in review.text) == reads, detail


async def test_a_file_that_comes_back_changes_nothing(filled_console: ConsoleBrowsers) -> None:
    olga = await filled_console(OLGA)
    csv = (await olga.get(f"{PAGE}?format=csv")).text
    assert 'private_data.user.mute,moderator,"true|eu,us"' in csv
    json = (await olga.get(f"{PAGE}?format=json")).text
    assert len(msgspec.json.decode(json)) == len(csv.splitlines()) - 1
    for text in (csv, json):
        assert "No changes." in await review_changes(olga, text)


async def test_search_filter_and_pages_are_the_servers(service: RunningService) -> None:
    groups = "".join(
        f"        g{group}: {{{', '.join(f'r{one}: {{value: false}}' for one in range(30))}}}\n" for group in range(3)
    )
    many = STUDIO.replace("      private_data:\n", f"      private_data:\n{groups}", 1)
    await apply_document(service, many)
    console_browsers = ConsoleBrowsers(service)
    olga = await console_browsers(OLGA)
    first, second = (await olga.get(PAGE)).text, (await olga.get(f"{PAGE}?page=2")).text
    assert first.count("<tr data-row=") == 30  # a group is not split
    assert 'data-row="private_data.g1.r0"' in second
    page = (await olga.get(f"{PAGE}?q=silence&roles=mod")).text
    assert page.count("<tr data-row=") == 1
    assert page.count("data-column=") == 1
    await console_browsers.close()
