"""Bans in the console of those who may ban from an application or a project, and refusals that name a ban (R10)."""

import re

import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import Refusal
from tests.support.browser import HttpBrowser
from tests.support.console import (
    ADA,
    DEV,
    MAX,
    OLGA,
    PIA,
    PROJECT,
    SHOP,
    ConsoleBrowsers,
    apply_document,
    login_of,
)
from tests.support.game import confirm_in_browser, poll_ended_session, register_game
from tests.support.permission_builders import a_person
from tests.support.service import RunningService

SHOP_BANS = f"/console/applications/{SHOP}/bans"
PROJECT_BANS = f"/console/projects/{PROJECT}/bans"
MODERATOR = """
applications:
  - {application_id: 1, roles: {bouncer: {meta: {private_data: {app: {can_ban: {value: true}}}}}}}
memberships:
  - {id: $project, users: {"$max": {applications: {"$shop": {roles: [bouncer]}}}}}
"""


async def read_user(studio: RunningService, user_id: str) -> User:
    return await studio.services.storage.accounts.user(user_id)


async def ban(browser: HttpBrowser, path: str, person: str, text: str = "Cheating") -> str:
    """Ban a person for a day; return the page that follows."""
    await browser.get(path)
    await browser.post(path, user_id=person, public_text=text, end="day", do="apply")
    return (await browser.follow()).text


@pytest.mark.both_databases
async def test_moderator_bans_by_id_and_lifts_in_their_application_only(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(studio, MODERATOR)
    moderator = await console_browsers(MAX)
    overview = (await moderator.get(f"/console/applications/{SHOP}")).text
    assert f'href="{SHOP_BANS}"' in overview
    await moderator.get(SHOP_BANS)
    review = (await moderator.post(SHOP_BANS, user_id=PIA, public_text="Cheating", end="three_days")).text
    assert (f"Ban {PIA}?" in review, "From: <strong>Shop</strong>" in review) == (True, True)
    assert (await read_user(studio, PIA)).bans == ()
    await moderator.post(SHOP_BANS, do="apply")
    page = (await moderator.follow()).text
    assert ("Person banned" in page, "Cheating" in page, PIA in page, "Pia" in page) == (True, True, True, False)
    (stored,) = (await read_user(studio, PIA)).bans
    assert (stored.application_id, stored.until) == (SHOP, studio.clock.now() + 3 * 86_400)
    by_name = (await moderator.post(SHOP_BANS, user_id="Max", end="day")).text  # they know people by ID only
    assert "No person called “Max”" in by_name
    for refused in (PROJECT_BANS, "/console/applications/50002/bans", f"/console/people/{PIA}/bans"):
        assert (await moderator.get(refused)).status_code == 403, refused
    await moderator.get(f"{SHOP_BANS}/lift?user_id={PIA}")
    await moderator.post(f"{SHOP_BANS}/lift")
    assert "Ban lifted" in (await moderator.follow()).text
    assert (await read_user(studio, PIA)).bans == ()
    assert (await (await console_browsers(DEV)).get(SHOP_BANS)).status_code == 403


@pytest.mark.both_databases
async def test_owner_bans_by_name_from_application_and_project(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    olga = await console_browsers(OLGA)
    assert "Pia" in await ban(olga, SHOP_BANS, "pia")
    page = await ban(olga, PROJECT_BANS, login_of(PIA), "Insults")
    assert ("Pia" in page, "Insults" in page, "Undo</button>" in page) == (True, True, True)
    bans = (await read_user(studio, PIA)).bans
    assert sorted((one.application_id, one.project_id) for one in bans) == [(0, PROJECT), (SHOP, "")]
    await olga.get(PROJECT_BANS)
    unknown = (await olga.post(PROJECT_BANS, user_id="no one here", end="day")).text
    assert re.search(r'class="wrong" id="user_id-problem"', unknown)
    above = await olga.post(PROJECT_BANS, user_id=ADA, end="day", do="apply")
    assert "You cannot ban an owner or administrator above you." in above.text
    file = (await olga.get(f"{PROJECT_BANS}?format=csv")).text
    assert (file.count("Insults"), "Cheating" in file) == (1, False)


async def test_an_id_alone_tells_no_name_of_someone_from_elsewhere(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    stranger = await a_person(studio.services.storage, "4100000001", nick="Stranger")
    olga, ada = await console_browsers(OLGA), await console_browsers(ADA)
    for path in (SHOP_BANS, PROJECT_BANS):
        await olga.get(path)
        review = (await olga.post(path, user_id=stranger.user_id, end="day")).text
        assert (f"Ban {stranger.user_id}?" in review, "Stranger" in review) == (True, False), path
        await ada.get(path)
        assert "Ban Stranger?" in (await ada.post(path, user_id=stranger.user_id, end="day")).text, path
    await olga.get(PROJECT_BANS)
    assert "Ban Stranger?" in (await olga.post(PROJECT_BANS, user_id=stranger.login or "", end="day")).text


async def test_finding_people_by_name_needs_all_parts_of_their_records(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    readable = "{canRead: {value: all}}"
    for parts, finds in ((("roles",), False), (("roles", "private", "public"), True)):
        meta = ", ".join(f"{part}: {readable}" for part in parts)
        reader = f'{{"$max": {{secret_data: {{meta: {{{meta}}}}}}}, "$pia": {{}}}}'
        await apply_document(studio, MODERATOR)
        await apply_document(studio, f"applications: [{{application_id: $shop, users: {reader}}}]")
        moderator = await console_browsers(MAX)
        await moderator.get(SHOP_BANS)
        assert ("Ban Pia?" in (await moderator.post(SHOP_BANS, user_id="pia", end="day")).text) is finds


async def test_choosing_among_people_of_an_application_shows_no_addresses(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(
        studio, 'applications: [{application_id: $shop, users: {"$max": {roles: [moderator]}, "$pia": {}}}]'
    )
    olga = await console_browsers(OLGA)
    await olga.get(SHOP_BANS)
    page = (await olga.post(SHOP_BANS, user_id="a", end="day")).text
    candidates = page.partition('class="candidates"')[2].partition("</ul>")[0]
    assert ("Pia" in candidates, "Max" in candidates, "@" in candidates) == (True, True, False)


@pytest.mark.both_databases
@pytest.mark.parametrize(("path", "place"), [(SHOP_BANS, "Shop"), (PROJECT_BANS, "Mind Games")])
async def test_refused_game_names_person_and_what_they_are_banned_from(
    studio: RunningService, console_browsers: ConsoleBrowsers, path: str, place: str
) -> None:
    ada, pia = await console_browsers(ADA), await console_browsers(PIA)
    await ban(ada, path, "Pia")
    game = await register_game(studio, app_id=SHOP)
    assert (await confirm_in_browser(pia, game)).url.path == "/game/denied"
    answer = (await poll_ended_session(game)).json()
    assert (answer["reason"], answer["public_text"]) == ("banned", "Cheating")
    said = f"<bdi>Pia</bdi> is banned from <bdi>{place}</bdi>"
    record = f"/console/games/record?id={answer['error']}"
    pages = ("/console/activity/refusals", "/console/games/recent", f"/console/games/{game.gsid[:13]}", record)
    for page in pages:
        assert said in (await ada.get(page)).text, page
    found = await studio.services.storage.audit.find_record(answer["error"])
    assert isinstance(found, Refusal)
    assert found.personal["actor"] == PIA
    assert found.details["banned_from"] in (f"application {SHOP}", f"project {PROJECT}")
    assert "Pia" not in repr(found)  # names are added for readers: an erasure leaves none


async def test_poll_after_a_ban_names_the_person(studio: RunningService, console_browsers: ConsoleBrowsers) -> None:
    ada, pia = await console_browsers(ADA), await console_browsers(PIA)
    game = await register_game(studio, app_id=SHOP)
    await confirm_in_browser(pia, game)
    await ban(ada, SHOP_BANS, "Pia")
    answer = (await poll_ended_session(game)).json()
    record = (await ada.get(f"/console/games/record?id={answer['error']}")).text
    assert "<bdi>Pia</bdi> is banned from <bdi>Shop</bdi>" in record
    assert f'href="/console/people/{PIA}">Pia</a>' in record


async def test_refusal_without_a_ban_names_person_and_application(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    await apply_document(
        studio, 'applications: [{application_id: $shop, settings: {restricted_domains: ["studio.example"]}}]'
    )
    ada, pia = await console_browsers(ADA), await console_browsers(PIA)
    game = await register_game(studio, app_id=SHOP)
    assert (await confirm_in_browser(pia, game)).url.path == "/game/denied"
    assert "<bdi>Pia</bdi> may not sign in to <bdi>Shop</bdi>" in (await ada.get("/console/activity/refusals")).text
