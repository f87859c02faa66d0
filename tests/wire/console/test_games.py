"""Game sessions in the console: shown without what would allow a takeover, closed, and error ids looked up."""

import re

import pytest

from tests.support.console import ADA, DEV, PIA, SHOP, WIKI, ConsoleBrowsers
from tests.support.game import poll_ended_session, register_game
from tests.support.service import RunningService

GAMES = "/console/games"


@pytest.mark.both_databases
async def test_a_session_is_listed_found_and_shown_without_its_secrets(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    shop, wiki = (
        await register_game(studio, app_id=SHOP, code="1", factor="fingerprint"),
        await register_game(studio, app_id=WIKI),
    )
    await studio.clock.advance(7)
    await studio.services.storage.game_sessions.record_progress(shop.gsid, studio.clock.now(), signing_in=False)
    ada, ref = await console_browsers(ADA), shop.gsid[:13]
    page = (await ada.get(GAMES)).text
    assert f"{ref}…" in page
    assert "page opened" in page
    for search in (shop.gsid, ref, "shop", "127.0.0.1", str(SHOP)):
        page_text = (await ada.get(f"{GAMES}?q={search}")).text
        assert ref in page_text, search
        assert (wiki.gsid[:13] in page_text) is (search == "127.0.0.1")
    one = (await ada.get(f"{GAMES}/{ref}")).text
    assert re.findall(r'<text x="178"[^>]*>([^<]*)</text>', one) == ["Started by the game", "Page opened", "Expires"]
    assert "+7 s" in one
    file = (await ada.get(f"{GAMES}?format=csv&state=pending")).text
    for text in (page, one, file):
        assert shop.gsid not in text
        assert shop.location not in text
        assert "fingerprint" not in text
    assert (await ada.get(f"{GAMES}/{shop.gsid}")).status_code == 404  # the full gsid is not a page's name


async def test_application_viewer_sees_its_sessions_without_personal_data(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    shop, wiki = await register_game(studio, app_id=SHOP), await register_game(studio, app_id=WIKI)
    dev, pia = await console_browsers(DEV), await console_browsers(PIA)
    page = (await dev.get(GAMES)).text
    assert shop.gsid[:13] in page
    assert wiki.gsid[:13] not in page
    assert "127.0.0.1" not in page
    for path in (f"{GAMES}/{shop.gsid[:13]}", f"{GAMES}?format=csv"):
        assert "127.0.0.1" not in (await dev.get(path)).text, path
    assert (await dev.get(f"{GAMES}?q=127.0.0.1")).text.count(shop.gsid[:13]) == 0
    for path in (f"{GAMES}/{wiki.gsid[:13]}", f"{GAMES}/{shop.gsid[:13]}/close", f"{GAMES}/record?id=ab"):
        assert (await dev.get(path)).status_code == 403, path
    assert (await pia.get(GAMES)).status_code == 403
    assert GAMES not in (await pia.get("/console")).text


async def test_a_session_is_closed_with_words_that_the_game_s_error_leads_to(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    game = await register_game(studio, app_id=SHOP)
    ada, page = await console_browsers(ADA), f"{GAMES}/{game.gsid[:13]}"
    assert "The game gets a failure" in (await ada.get(f"{page}/close")).text
    await ada.post(f"{page}/close", reason="A test of the tournament")
    assert "Session closed" in (await ada.follow()).text
    body = (await poll_ended_session(game)).json()
    assert body["status"] == "ERROR"
    record = (await ada.get(f"{GAMES}/record?id={body['error']}")).text
    assert "closed by an administrator: A test of the tournament" in record
    assert game.gsid not in record
    again = await ada.get(f"{page}/close")
    assert again.status_code == 200
    assert (await ada.post(f"{page}/close", reason="Once more")).status_code == 409
    log = (await ada.get("/console/activity?group=game_session")).text
    assert "<bdi>Ada</bdi> closed a game session" in log
    assert game.gsid not in log
    for query in ("side=by", "side=by&format=csv"):
        records_about_her = (await ada.get(f"/console/people/{ADA}/activity?{query}")).text
        assert game.gsid[:8] in records_about_her
        assert game.gsid not in records_about_her


async def test_the_id_a_refused_game_was_told_is_looked_up(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    game = await register_game(studio, app_id=SHOP)
    refusal = await studio.client.post(
        "/proxy/api/gameSession/getGsidResult", json={"gsid": game.gsid}, params={"location": "wrong"}
    )
    ada = await console_browsers(ADA)
    page = (await ada.get(f"{GAMES}/record?id={refusal.json()['error']}")).text
    assert "wrong location" in page
    assert f"{GAMES}/{game.gsid[:13]}" in page
    timeline = (await ada.get(f"{GAMES}/{game.gsid[:13]}")).text
    assert refusal.json()["error"] in timeline
    assert (await ada.get(f"{GAMES}/record?id={'0' * 32}")).status_code == 404
