"""Game sessions in the console: shown without what would allow a takeover, closed, and error ids looked up."""

import re

import pytest
from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.statements import Verb
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


@pytest.mark.both_databases
async def test_recent_sign_ins_are_listed_with_result_and_found_by_person_and_application(
    studio: RunningService, console_browsers: ConsoleBrowsers
) -> None:
    services, now = studio.services, studio.clock.now()
    confirmed = services.core.recorder.record(
        AuditEvent.GAME_CONFIRMED, AuditOrigin(actor=PIA), subject=PIA, details={"gsid": "a" * 36, "app_id": SHOP}
    )
    refusals = services.games.refusals
    failed = refusals.end_refusal("b" * 36, AuditOrigin(actor=PIA), "canceled in the browser", app_id=WIKI)

    def verb() -> Verb[None]:
        yield from add_audit_record(replace(confirmed, at=now - 7_200))

    await services.storage.runner.write(verb)
    await services.storage.audit.add_refusal(failed, 100)
    ada = await console_browsers(ADA)
    home = (await ada.get("/console")).text
    assert f'href="{GAMES}/recent"' in home
    hour, day = (await ada.get(f"{GAMES}/recent?period=1h")).text, (await ada.get(f"{GAMES}/recent")).text
    assert ("Pia" in day, day.count('badge good">Signed in'), hour.count('badge good">Signed in')) == (True, 1, 0)
    assert day.count('badge bad">Failed') == hour.count('badge bad">Failed') == 1
    for query, found in (
        ("result=failed", (0, 1)),
        (f"application_id={SHOP}", (1, 0)),
        (f"application_id={WIKI}&user_id={PIA}", (0, 1)),
        (f"user_id={ADA}", (0, 0)),
    ):
        page = (await ada.get(f"{GAMES}/recent?{query}")).text
        assert (page.count('badge good">Signed in'), page.count('badge bad">Failed')) == found, query
    dev = (await (await console_browsers(DEV)).get(f"{GAMES}/recent")).text
    assert ("Signed in" in dev, "Failed</span>" in dev, "Pia" in dev) == (True, False, False)
    pia = await services.storage.accounts.user(PIA)
    await services.accounts.erasure.erase(pia, AuditOrigin(actor="test"))
    assert 'badge bad">Failed' not in (await ada.get(f"{GAMES}/recent")).text
