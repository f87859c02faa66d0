"""A person's profile, timeline and peek; saved views; the applications of managers and players."""

import re
from html import unescape

import pytest

from gatehouse.admin.saved_views import MAX_VIEWS, SavedViewStore
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.console import ADA, DEV, MAX, OLGA, PIA, PROJECT, SHOP, ConsoleBrowsers, login_of, post_form
from tests.support.service import RunningService
from tests.support.studio import FACTOR
from tests.wire.console.test_access_invitations import Inviter, groups, sign_in_and_open
from tests.wire.console.test_api_calls import jwt_of

PERSON = f"/console/people/{PIA}"
LIST = "/console/people"
VIEWS = f"{LIST}/views"
DAY = 86_400


def plain(page: str) -> str:
    """What a page says, without its tags."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<(?!/?small)[^>]*>", "", page)))


async def headers_of(studio: RunningService) -> dict[str, str]:
    return {"Authorization": f"Bearer {await jwt_of(studio, ADA)}", "Factor": FACTOR}


async def test_profile_shows_roles_sessions_and_failures_and_leads_to_the_form(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, _ = await console_browsers(ADA), await console_browsers(PIA)
    stranger = HttpBrowser(studio)
    for page in (PERSON, f"{PERSON}/peek"):
        text = plain((await ada.get(page)).text)
        assert all(words in text for words in ("moderator", "Shop", "Testers", "1 session", "None in the last day"))
        assert "Level" not in text
    assert f'href="{PERSON}/edit"' in (await ada.get(PERSON)).text
    assert "<html" not in (await ada.get(f"{PERSON}/peek")).text  # a part of a page
    form = (await ada.get(f"{PERSON}/edit")).text
    assert '<select name="lang"><option value="en" lang="en" selected>' in form
    await stranger.client.aclose()


async def test_timeline_tells_roles_groups_and_bans_and_since_when(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await studio.clock.advance(DAY)
    (group,) = [one for one in await groups(studio) if one.title == "Testers"]
    ada = await console_browsers(ADA)
    admin_jwt = await headers_of(studio)
    for users in ([], [PIA, DEV]):
        await studio.clock.advance(60)
        answer = await studio.client.post(
            "/api/permissions/group/access",
            json={"group_id": group.group_id, "data": {"users": users}},
            headers=admin_jwt,
        )
        assert answer.status_code == 200, answer.text
    await Inviter(studio, OLGA).invite(
        login=login_of(DEV),
        project_id=PROJECT,
        role={"application_id": SHOP, "name": "moderator", "project_id": PROJECT},
    )
    accepted = await (await sign_in_and_open(console_browsers, DEV)).post("/account/invitations", decision="accept")
    assert accepted.status_code == 303
    await studio.clock.advance(60)
    await studio.services.accounts.administration.block(PIA, AuditOrigin(actor=ADA))
    of_pia, of_dev = [plain((await ada.get(f"/console/people/{one}/timeline")).text) for one in (PIA, DEV)]
    assert re.search(r"Ada blocked.*Ada added Pia to group Testers.*Ada removed Pia from group Testers", of_pia)
    assert "added Dev to group Testers" in of_dev
    assert "Ada added Pia" not in of_dev
    assert "signed in" not in of_dev
    assert "Complete since registration on" in of_dev
    file = (await ada.get(f"/console/people/{DEV}/timeline?format=csv")).text
    assert all(event in file for event in ("user.joined_group", "invitation.accepted", "user_schema.saved"))
    olga = await console_browsers(OLGA)
    assert (await olga.get(f"{PERSON}/timeline")).status_code == 403
    assert (await olga.get(f"{PERSON}/peek")).status_code == 403


async def test_timeline_is_read_a_page_at_a_time_past_any_number_of_sign_ins(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    ada, administration = await console_browsers(ADA), studio.services.accounts.administration
    for _ in range(15):
        await studio.clock.advance(1)
        await administration.block(PIA, ORIGIN)
        await administration.unblock(PIA, ORIGIN)
    page, seen, address = "", 0, f"{PERSON}/timeline"
    for _ in range(3):
        page = (await ada.get(address)).text
        seen += page.count('<li id="e-')
        older = re.search(r'href="(\?after=[^"]+)" rel="next"', page)
        if older is None:
            break
        assert "Complete since" not in page
        address = f"{PERSON}/timeline{unescape(older[1])}"
    records = await studio.services.storage.audit.newest_records(100, PIA, "")
    assert seen == sum(one.event.startswith(("user.", "user_schema.")) for one in records) >= 30


async def test_deleted_group_is_left_by_each_of_its_members(studio: RunningService) -> None:
    (group,) = [one for one in await groups(studio) if one.title == "Testers"]
    answer = await studio.client.post(
        "/api/permissions/group",
        json={"action": "delete", "group_id": group.group_id},
        headers=await headers_of(studio),
    )
    assert answer.status_code == 200, answer.text
    (record,) = await studio.services.storage.audit.newest_records(10, "", AuditEvent.GROUP_LEFT.value)
    assert (record.subject, record.actor, record.details["title"]) == (PIA, ADA, "Testers")


@pytest.mark.both_databases
async def test_views_are_saved_for_oneself_replaced_removed_and_erased(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await studio.services.accounts.administration.create(
        login="eve@studio.example",
        nick="Eve",
        password=PASSWORD,
        origin=ORIGIN,
        administrator=True,
    )
    ada = await console_browsers(ADA)
    await ada.get("/console/people?among=blocked&tag=beta")
    saved = await post_form(ada, f"{VIEWS}?among=blocked&tag=beta", name="Blocked testers")
    assert saved.status_code == 303, saved.text
    assert saved.headers["location"] == "/console/people?among=blocked&tag=beta"
    page = await ada.get("/console/people")
    assert 'href="/console/people?among=blocked&amp;tag=beta">Blocked testers</a>' in page.text
    await ada.get(f"{LIST}?among=guests")
    await post_form(ada, f"{VIEWS}?among=guests", name="Blocked testers")
    page = await ada.get(f"{LIST}?among=guests")
    assert page.text.count(">Blocked testers</a>") == 1
    assert "Delete view" in page.text
    for address, name in ((VIEWS, "Nothing"), (f"{VIEWS}?tag=x", " "), (f"{VIEWS}?tag=x", "x" * 41)):
        await ada.get(f"{LIST}?among=guests")
        assert (await post_form(ada, address, name=name)).status_code == 400
    for number in range(MAX_VIEWS - 1):
        await ada.get(f"{LIST}?tag=t{number}")
        assert (await post_form(ada, f"{VIEWS}?tag=t{number}", name=f"View {number}")).status_code == 303
    await ada.get(f"{LIST}?tag=more")
    many = await post_form(ada, f"{VIEWS}?tag=more", name="One more")
    assert (many.status_code, "At most 20 views" in many.text) == (400, True)
    await ada.get(f"{LIST}?among=guests")
    assert (await post_form(ada, f"{VIEWS}/remove", name="Blocked testers")).status_code == 303
    assert "Blocked testers" not in (await ada.get(LIST)).text

    eve = HttpBrowser(studio)
    await eve.sign_in("eve@studio.example")
    assert "View 1" not in (await eve.get(LIST)).text
    await eve.client.aclose()
    stored = await studio.services.storage.accounts.user(ADA)
    export = await studio.services.personal_data.export.export_user(stored, ORIGIN)
    assert len(export.saved_views) == MAX_VIEWS - 1
    assert ("people", "View 0", "tag=t0") in [(view.list, view.name, view.query) for view in export.saved_views]
    await studio.services.accounts.erasure.erase(stored, ORIGIN)
    assert await SavedViewStore(studio.services.storage.runner).views_of(ADA, "people") == []
    olga = await console_browsers(OLGA)
    await olga.get("/console")
    assert (await post_form(olga, f"{VIEWS}?tag=x", name="Mine")).status_code == 403


async def test_user_managers_find_their_applications_as_cards(console_browsers: ConsoleBrowsers) -> None:
    manager = await console_browsers(MAX)
    page = (await manager.get("/console")).text
    assert f'href="/console/applications/{SHOP}/users"' in page
    assert "1 person with a role" in plain(page)
    assert f"/console/access/check?application_id={SHOP}" in page
    assert "Wiki" not in plain(page)


@pytest.mark.parametrize("is_banned", [False, True])
async def test_people_find_their_applications_on_their_account_unless_banned(
    studio: RunningService, console_browsers: ConsoleBrowsers, *, is_banned: bool
) -> None:
    if is_banned:
        banned = await studio.client.post(
            "/api/permissions/user/ban",
            json={"action": "save", "user_id": PIA, "application_id": SHOP, "data": {"public_text": "No"}},
            headers=await headers_of(studio),
        )
        assert banned.status_code == 200, banned.text
    pia = await console_browsers(PIA)
    page = (await pia.get("/account")).text
    assert "My applications" in page
    assert ("<strong>Shop</strong>" in page.partition('class="app-cards"')[2]) is not is_banned
    assert "<strong>Wiki</strong>" not in page
