"""The browser's side of a game sign-in: the link, the confirmation page, and what follows (R4)."""

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.tables.accounts import interactions
from gatehouse.web.pages.template_filters import qr_code
from tests.support.browser import PASSWORD, HttpBrowser, hidden_fields
from tests.support.game import (
    ANNA,
    OTHER_ADDRESS,
    Game,
    confirm_in_browser,
    poll_ended_session,
    refusal_reason,
    register_game,
    register_game_elsewhere,
    wait_until_held,
)
from tests.support.geoip import write_geoip
from tests.support.permission_builders import a_new_application, a_project, create_application, publish, set_fields
from tests.support.service import RunningService, running_service
from tests.wire.oauth.authorize_responses import count_rows, set_limited_session, wants_sign_in

BOB = "bob@studio.example"
LINK = re.compile(r'<a href="([^"]+)" role="button"')
CHOICE = re.compile(r'type="radio" name="code" value="(\d+)" required')
WARNING = "This sign-in started on another network"
NEARBY = "from your network"
OVER = "This sign-in has ended"
PLACES = {"country": {"iso_code": "SE", "names": {"en": "Sweden", "de": "Schweden"}}}


@pytest.fixture
async def bob(service: RunningService) -> AsyncIterator[HttpBrowser]:
    """The browser of a second person, signed in."""
    await service.services.accounts.administration.create(
        login=BOB, nick="Bob", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    someone = HttpBrowser(service)
    await someone.sign_in(BOB)
    yield someone
    await someone.client.aclose()


@pytest.fixture
async def signed_in_browser(browser_client: HttpBrowser, anna: User) -> HttpBrowser:
    """Anna's browser, signed in."""
    await browser_client.sign_in(anna.login or "")
    return browser_client


async def open_question(browser_client: HttpBrowser, game: Game) -> httpx2.Response:
    """Open the confirmation page as a signed-in person."""
    await browser_client.get(f"/?gsid={game.gsid}")
    page = await browser_client.follow()
    assert page.url.path == "/sign-in/confirm", page.text
    return page


async def decide(browser_client: HttpBrowser, decision: str = "confirm", **fields: str) -> httpx2.Response:
    response = await browser_client.post("/sign-in/confirm", decision=decision, **fields)
    return await browser_client.follow() if response.status_code == 303 else response


async def state_of(service: RunningService, gsid: str) -> object:
    return (await service.client.get("/game/state", params={"gsid": gsid})).json()


async def names(service: RunningService) -> Game:
    """A session of a game that has a name."""
    application = await create_application(service.services.storage, name="Sky Raiders")
    return await register_game(service, app_id=application.application_id)


def choices_in(page: httpx2.Response) -> list[str]:
    return CHOICE.findall(page.text)


# -- the link --


async def test_another_account_is_used_from_the_question_and_the_question_comes_back(
    service: RunningService, signed_in_browser: HttpBrowser, bob: HttpBrowser
) -> None:
    game = await register_game(service)
    page = await open_question(signed_in_browser, game)
    (link,) = re.findall(r'href="(/sign-in\?interaction=[^"]+)">Use another account<', page.text)
    await signed_in_browser.get(unescape(link))
    await signed_in_browser.post("/sign-in", login=BOB, password=PASSWORD)
    question = await signed_in_browser.follow()
    assert (question.url.path, BOB in question.text, ANNA in question.text) == ("/sign-in/confirm", True, False)
    assert "You're signed in" in (await decide(signed_in_browser)).text
    assert (await game.poll()).json()["nick"] == "Bob"
    assert (await bob.get("/account")).status_code == 200, "Bob's other session goes on"


async def test_the_link_leads_by_the_sign_in_to_the_question_and_back_to_the_game(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    game = await names(service)
    polling = game.start_poll()
    await wait_until_held(service)
    assert wants_sign_in(await browser_client.get(f"/?gsid={game.gsid}"))
    page = await browser_client.follow()
    assert "Sky Raiders" in page.text
    assert "Use your phone" in page.text
    await browser_client.post("/sign-in", login=ANNA, password=PASSWORD)
    question = await browser_client.follow()
    for text in ("Sign in to Sky Raiders on your PC?", "just now", NEARBY, "The game is waiting.", "Anna", ANNA):
        assert text in question.text
    assert WARNING not in question.text
    assert choices_in(question) == []
    done = await decide(browser_client)
    assert "You're signed in" in done.text
    body = (await polling).json()
    assert (body["status"], body["user_id"]) == ("OK", anna.user_id)


@pytest.mark.usefixtures("anna")
async def test_a_game_without_a_name_is_a_game(service: RunningService, browser_client: HttpBrowser) -> None:
    game = await register_game(service)
    await browser_client.get(f"/?gsid={game.gsid}")
    assert "to continue to <strong><bdi>a game</bdi></strong>" in (await browser_client.follow()).text
    await browser_client.post("/sign-in", login=ANNA, password=PASSWORD)
    assert "Sign in to a game on your PC?" in (await browser_client.follow()).text


async def test_the_question_tells_how_many_seconds_ago_it_was_started(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await register_game(service)
    await service.clock.advance(12)
    assert ">12 seconds ago</time>" in (await open_question(signed_in_browser, game)).text
    await service.clock.advance(60)
    assert ">1 minute ago</time>" in (await open_question(signed_in_browser, game)).text


async def test_a_live_session_is_asked_all_the_same_and_only_a_post_answers(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await register_game(service)
    page = await open_question(signed_in_browser, game)
    await signed_in_browser.get(f"{page.url.path}?{page.url.query.decode()}&decision=confirm")
    assert await state_of(service, game.gsid) == {"state": "signing_in", "closed": "", "waiting": True}
    assert (await service.client.post("/sign-in/confirm", data={"decision": "confirm"})).status_code == 400
    unguarded = {**hidden_fields(page.text), "csrf": "", "decision": "confirm"}
    assert (await signed_in_browser.client.post("/sign-in/confirm", data=unguarded)).status_code == 403
    assert await state_of(service, game.gsid) == {"state": "signing_in", "closed": "", "waiting": True}


async def test_prefetch_and_head_requests_change_nothing(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game, started = await register_game(service), await count_rows(service, interactions)
    for headers in ({"Sec-Purpose": "prefetch;prerender"}, {"Purpose": "prefetch"}):
        response = await signed_in_browser.client.get(f"/?gsid={game.gsid}", headers=headers)
        assert (response.status_code, response.headers["cache-control"]) == (503, "no-store")
    assert (await signed_in_browser.client.head(f"/?gsid={game.gsid}")).status_code == 200
    assert await count_rows(service, interactions) == started
    assert await state_of(service, game.gsid) == {"state": "waiting", "closed": "", "waiting": True}


async def test_the_page_cannot_be_framed(service: RunningService, signed_in_browser: HttpBrowser) -> None:
    page = await open_question(signed_in_browser, await register_game(service))
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"


async def test_a_session_from_a_short_token_has_to_sign_in_first(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await set_limited_session(service, anna, browser_client)
    game = await register_game(service)
    assert wants_sign_in(await browser_client.get(f"/?gsid={game.gsid}"))
    browser_client.client.cookies.clear()
    assert "Return to the game" in (await confirm_in_browser(browser_client, game)).text


async def test_unknown_ended_and_answered_sessions_look_alike(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    cancelled, confirmed, old = [await register_game(service) for _ in range(3)]
    await open_question(signed_in_browser, cancelled)
    await decide(signed_in_browser, "cancel")
    await open_question(signed_in_browser, confirmed)
    await decide(signed_in_browser)
    over = (cancelled.gsid, confirmed.gsid, "unknown", "x" * 3000)
    pages = [await signed_in_browser.get(f"/?gsid={gsid}") for gsid in over]
    await service.clock.advance(120)
    pages.append(await signed_in_browser.get(f"/?gsid={old.gsid}"))
    bodies = {re.sub(r'gsid=[^"&]*', "", page.text) for page in pages}
    assert len(bodies) == 1
    assert OVER in bodies.pop()
    assert {page.status_code for page in pages} == {404}


async def test_gs_20_what_was_asked_for_at_creation_wins(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await names(service)
    other = await create_application(service.services.storage, name="Other Game")
    more = f"app_id={other.application_id}&nojwt=0&short_token=1&meta=1&with_email=x&factor=y&stoken=z&code=1"
    await signed_in_browser.get(f"/?gsid={game.gsid}&{more}")
    page = await signed_in_browser.follow()
    assert "Sky Raiders" in page.text
    assert "Other Game" not in page.text
    await decide(signed_in_browser)
    body = (await poll_ended_session(game)).json()
    assert body["status"] == "OK"
    assert not {"jwt", "factor", "meta", "stoken", "login"} & body.keys()


async def test_sign_in_flows_from_one_source_are_rate_limited(migrated_url: str, tmp_path: Path) -> None:
    async with running_service(
        migrated_url, tmp_path / "data", environment={"GATEHOUSE__RATES__LOGIN": "3"}
    ) as service:
        game = await register_game(service)
        answers = [(await service.client.get("/", params={"gsid": game.gsid})).status_code for _ in range(5)]
        assert (answers[0], answers[-1]) == (303, 429)


async def test_gs_32_no_page_tells_where_it_was_and_none_is_kept(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await register_game(service)
    pages = [
        await signed_in_browser.get(f"/?gsid={game.gsid}"),
        await signed_in_browser.follow(),
        await decide(signed_in_browser),
    ]
    ends = ("cancelled", "wrong-code", "denied", "state")
    pages += [await signed_in_browser.get(f"/game/{end}?gsid={game.gsid}") for end in ends]
    assert {page.headers["referrer-policy"] for page in pages} == {"no-referrer"}
    assert {page.headers["cache-control"] for page in pages} == {"no-store"}


# -- a different location --


async def test_gs_18_from_another_address_the_page_warns_and_the_audit_log_says_so(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User
) -> None:
    game = await register_game_elsewhere(service)
    page = await open_question(signed_in_browser, game)
    assert WARNING in page.text
    assert f"from another location: <bdi>{OTHER_ADDRESS}</bdi>" in page.text
    assert NEARBY not in page.text
    await decide(signed_in_browser)
    [record] = await service.services.storage.audit.newest_records(5, anna.user_id, "game.confirmed")
    assert record.details["network"] == "different"


async def test_gs_18_the_number_that_the_game_shows_is_picked_out_of_three(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User
) -> None:
    game = await register_game_elsewhere(service, code="1")
    page = await open_question(signed_in_browser, game)
    offered = choices_in(page)
    assert len(set(offered)) == 3
    assert game.answer["code"] in offered
    assert choices_in(await open_question(signed_in_browser, game)) == offered
    assert "checked" not in page.text
    assert "Return to the game" in (await decide(signed_in_browser, code=game.answer["code"])).text
    assert (await game.poll()).json()["user_id"] == anna.user_id


async def test_gs_18_a_wrong_number_ends_it(service: RunningService, signed_in_browser: HttpBrowser) -> None:
    game = await register_game_elsewhere(service, code="1")
    wrong = next(
        code for code in choices_in(await open_question(signed_in_browser, game)) if code != game.answer["code"]
    )
    page = await decide(signed_in_browser, code=wrong)
    assert page.url.path == "/game/wrong-code"
    assert "Wrong number" in page.text
    body = (await poll_ended_session(game)).json()
    assert body["status"] == "ERROR"
    record = await service.services.storage.audit.find_record(body["error"])
    assert "wrong code picked" in getattr(record, "reason", "")
    await signed_in_browser.get(f"/?gsid={game.gsid}")
    assert OVER in (signed_in_browser.page.text if signed_in_browser.page else "")


async def test_gs_18_without_a_number_the_page_asks_once_more_and_no_one_is_signed_in(
    service: RunningService, signed_in_browser: HttpBrowser, anna: User
) -> None:
    game = await register_game_elsewhere(service, code="1")
    await open_question(signed_in_browser, game)
    again = await decide(signed_in_browser)
    assert game.answer["code"] in choices_in(again)
    assert await state_of(service, game.gsid) == {"state": "signing_in", "closed": "", "waiting": True}
    await decide(signed_in_browser, code=game.answer["code"])
    assert (await game.poll()).json()["user_id"] == anna.user_id


async def test_gs_18_addresses_that_prove_nothing_are_no_sign_of_closeness(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    """Behind an untrusted proxy, game and browser have the same address, the proxy's."""
    game = await register_game(service, {"X-Forwarded-For": "203.0.113.66"}, code="1")
    signed_in_browser.client.headers["X-Forwarded-For"] = "198.51.100.7"
    page = await open_question(signed_in_browser, game)
    assert "from your network" not in page.text
    assert len(choices_in(page)) == 3


async def test_code_match_is_skipped_in_the_same_network(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await register_game(service, code="1")
    assert choices_in(await open_question(signed_in_browser, game)) == []
    assert "Return to the game" in (await decide(signed_in_browser)).text


async def test_ipv4_beside_ipv6_is_neither_warned_of_nor_called_near(migrated_url: str, tmp_path: Path) -> None:
    environment = {"GATEHOUSE__SERVER__TRUSTED_PROXIES": f"{OTHER_ADDRESS}/32"}
    async with running_service(migrated_url, tmp_path / "data", environment=environment) as service:
        await service.services.accounts.administration.create(
            login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
        )
        browser_client = HttpBrowser(service)
        await browser_client.sign_in(ANNA)
        page = await open_question(
            browser_client, await register_game_elsewhere(service, forwarded_for="2001:db8::7")
        )
        assert "just now</time> from <bdi>2001:db8::7</bdi>." in page.text
        for absent in (WARNING, NEARBY, "another location"):
            assert absent not in page.text
        await browser_client.client.aclose()


async def test_a_place_is_named_when_it_is_known_in_the_readers_language(migrated_url: str, tmp_path: Path) -> None:
    file = write_geoip(tmp_path / "city.mmdb", {f"{OTHER_ADDRESS}/32": PLACES})
    environment = {"GATEHOUSE__ACCOUNTS__GEOIP_FILE": str(file)}
    async with running_service(migrated_url, tmp_path / "data", environment=environment) as service:
        await service.services.accounts.administration.create(
            login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
        )
        browser_client = HttpBrowser(service)
        await browser_client.sign_in(ANNA)
        page = await open_question(browser_client, await register_game_elsewhere(service))
        assert "from another location: <bdi>Sweden</bdi>" in page.text
        german = await browser_client.get(f"{page.url.path}?{page.url.query.decode()}&lang=de")
        assert "an einem anderen Ort: <bdi>Schweden</bdi>" in german.text
        await browser_client.client.aclose()


# -- concurrent and late decisions --


async def test_gs_19_of_two_who_open_the_same_link_the_first_answer_counts(
    service: RunningService, signed_in_browser: HttpBrowser, bob: HttpBrowser, anna: User
) -> None:
    game = await register_game(service)
    await open_question(signed_in_browser, game)
    await open_question(bob, game)
    assert "Return to the game" in (await decide(signed_in_browser)).text
    late = await decide(bob)
    assert (late.status_code, OVER in late.text) == (404, True)
    assert (await game.poll()).json()["user_id"] == anna.user_id


async def test_gs_19_a_no_after_the_first_yes_changes_nothing(
    service: RunningService, signed_in_browser: HttpBrowser, bob: HttpBrowser, anna: User
) -> None:
    game = await register_game(service)
    await open_question(bob, game)
    await open_question(signed_in_browser, game)
    await decide(signed_in_browser)
    late = await decide(bob, "cancel")
    assert (late.status_code, OVER in late.text) == (404, True)
    assert (await game.poll()).json()["user_id"] == anna.user_id


async def test_gs_19_after_close_gsid_a_yes_is_refused(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await register_game(service)
    await open_question(signed_in_browser, game)
    assert (await game.close("Error")).json() == {"status": "OK"}
    late = await decide(signed_in_browser)
    assert (late.status_code, OVER in late.text) == (404, True)
    assert (await poll_ended_session(game)).json()["status"] == "ERROR"


async def test_gs_19_after_its_time_a_yes_is_refused(service: RunningService, signed_in_browser: HttpBrowser) -> None:
    game = await register_game(service)
    await open_question(signed_in_browser, game)
    await service.clock.advance(120)
    late = await decide(signed_in_browser)
    assert (late.status_code, OVER in late.text) == (404, True)
    assert await refusal_reason(service, await game.poll()) == "no such session"


@pytest.mark.usefixtures("anna")
async def test_a_way_that_took_too_long_starts_again_at_the_games_link(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    game = await register_game(service)
    await browser_client.get(f"/?gsid={game.gsid}&lang=de&app_id=1")
    await browser_client.follow()
    for _ in range(7):  # the game keeps waiting
        await service.clock.advance(60)
        polling = game.start_poll()
        await wait_until_held(service)
        await service.services.games.write_behind.flush()
        await service.clock.advance(31)
        await polling
    late = await browser_client.post("/sign-in", login=ANNA, password=PASSWORD)
    assert late.status_code == 400
    assert LINK.findall(late.text) == [f"/?gsid={game.gsid}"]
    assert "Return to the game" in (await confirm_in_browser(browser_client, game)).text


async def test_a_yes_after_the_sign_in_ended_elsewhere_does_nothing_and_leads_back_to_the_link(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await register_game(service)
    await open_question(signed_in_browser, game)
    signed_in_browser.client.cookies.delete("gh_session")
    late = await decide(signed_in_browser)
    assert (late.status_code, LINK.findall(late.text)) == (403, [f"/?gsid={game.gsid}"])
    assert await state_of(service, game.gsid) == {"state": "signing_in", "closed": "", "waiting": True}
    assert "Return to the game" in (await confirm_in_browser(signed_in_browser, game)).text


@pytest.mark.usefixtures("anna")
async def test_the_form_of_a_second_tab_leads_on_after_the_sign_in_in_the_first(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    first, second = await register_game(service), await register_game(service)
    tabs = []
    for game in (second, first):
        await browser_client.get(f"/?gsid={game.gsid}")
        tabs.append(await browser_client.follow())
    await browser_client.post("/sign-in", login=ANNA, password=PASSWORD)
    browser_client.page = tabs[0]
    late = await browser_client.post("/sign-in", login=ANNA, password=PASSWORD)
    assert (late.status_code, LINK.findall(late.text)) == (403, [f"/?gsid={second.gsid}"])
    assert "Nothing was changed." in late.text
    await open_question(browser_client, second)


async def test_denied_confirmation_ends_the_session_and_is_recorded(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await register_game(service)
    polling = game.start_poll()
    await wait_until_held(service)
    await open_question(signed_in_browser, game)
    page = await decide(signed_in_browser, "cancel")
    assert "Sign-in canceled" in page.text
    body = (await polling).json()
    assert body["status"] == "ERROR"
    record = await service.services.storage.audit.find_record(body["error"])
    assert getattr(record, "reason", "") == "canceled in the browser"
    assert await state_of(service, game.gsid) == {"state": "cancelled", "closed": "", "waiting": True}


async def test_whom_the_application_does_not_let_in_is_told_which_and_whom_to_ask(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    project = a_project(title="Mind Games")
    new = a_new_application(
        name="Sky Raiders",
        settings={"restricted_domains": ["other.example"]},
        project_id=project.project_id,
    )
    project = await publish(service.services.storage, project, new=new)
    game = await register_game(service, app_id=project.application_id)
    await open_question(signed_in_browser, game)
    page = await decide(signed_in_browser)
    assert (page.url.path, page.status_code) == ("/game/denied", 403)
    for text in ("Sky Raiders", "Mind Games", ANNA):
        assert text in page.text
    assert (await poll_ended_session(game)).json()["status"] == "ERROR"
    page_for_others = await service.client.get("/game/denied", params={"gsid": game.gsid})
    assert (page_for_others.status_code, ANNA in page_for_others.text, "Mind Games" in page_for_others.text) == (
        404,
        False,
        False,
    )


async def test_denial_names_the_application_that_refuses(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    launcher = await create_application(service.services.storage, name="Launcher")
    closed = await create_application(
        service.services.storage, name="Sky Raiders", settings={"restricted_domains": ["other.example"]}
    )
    game = await register_game(service, app_id=launcher.application_id, gapp_id=closed.application_id)
    await open_question(signed_in_browser, game)
    page = await decide(signed_in_browser)
    assert page.url.path == "/game/denied"
    assert ("Sky Raiders" in page.text, "Launcher" in page.text) == (True, False)


async def test_only_administrators_see_the_missing_permission(service: RunningService, bob: HttpBrowser) -> None:
    """As on the page of an application with a web client."""
    ada = await service.services.accounts.administration.create(
        login="ada@studio.example",
        nick="Ada",
        password=PASSWORD,
        origin=AuditOrigin(actor="test"),
        administrator=True,
    )
    closed = await create_application(service.services.storage, name="Sky Raiders")
    administrator = HttpBrowser(service)
    await administrator.sign_in("ada@studio.example")
    user = await service.services.storage.accounts.user_by_login(BOB)
    assert user is not None
    for someone, user_id, is_told in ((administrator, ada.user_id, True), (bob, user.user_id, False)):
        await service.services.storage.user_records.edit_record(
            closed.application_id, user_id, set_fields(login={"can": {"value": False}}), 0
        )
        await open_question(someone, await register_game(service, app_id=closed.application_id))
        page = await decide(someone)
        assert page.url.path == "/game/denied"
        assert ("<dt>Missing permission</dt><dd><code>login.can</code></dd>" in page.text) is is_told
        assert ("/console/access/check?user_id=" in page.text) is is_told
    await administrator.client.aclose()


# -- after the decision --


async def test_denial_page_is_hidden_from_other_people(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await names(service)
    await game.close("Error")
    page = await signed_in_browser.get(f"/game/denied?gsid={game.gsid}")
    assert page.status_code == 404
    assert "Sky Raiders" not in page.text


async def test_the_state_tells_whether_the_game_waits_and_nothing_about_people(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await register_game(service)
    assert await state_of(service, game.gsid) == {"state": "waiting", "closed": "", "waiting": True}
    await service.clock.advance(40)
    assert await state_of(service, game.gsid) == {"state": "waiting", "closed": "", "waiting": False}
    assert "seems to have stopped waiting" in (await open_question(signed_in_browser, game)).text
    polling = game.start_poll()
    await wait_until_held(service)
    await service.clock.advance(1)
    await service.services.games.write_behind.flush()
    assert await state_of(service, game.gsid) == {"state": "signing_in", "closed": "", "waiting": True}
    await decide(signed_in_browser)
    await polling
    assert await state_of(service, game.gsid) == {"state": "confirmed", "closed": "", "waiting": True}
    await game.close("Success")
    assert await state_of(service, game.gsid) == {"state": "confirmed", "closed": "Success", "waiting": True}
    for unknown in ("", "no_one"):
        assert await state_of(service, unknown) == {"state": "over"}


@pytest.mark.parametrize(
    ("closing", "says", "other"),
    [("Success", "You can close this tab.", "Error"), ("Error", "Game sign-in failed", "Success")],
)
async def test_the_last_page_tells_what_the_game_says_and_then_asks_no_more(
    service: RunningService, signed_in_browser: HttpBrowser, closing: str, says: str, other: str
) -> None:
    game = await register_game(service)
    await open_question(signed_in_browser, game)
    page = await decide(signed_in_browser)
    assert 'data-until="cancelled Success Error"' in page.text
    assert (await game.poll()).json()["status"] == "OK"
    for word, is_said in ((closing, True), (other, False), (closing, True)):  # the last one counts (R4)
        await game.close(word)
        page = await signed_in_browser.get(f"/game/done?gsid={game.gsid}")
        assert (says in page.text) == is_said
        assert "data-until" not in page.text


async def test_the_last_page_claims_nothing_about_a_session_that_was_not_confirmed(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    game = await register_game(service)
    assert (await signed_in_browser.get(f"/game/done?gsid={game.gsid}")).headers["location"] == f"/?gsid={game.gsid}"
    await game.close("Success")  # before a person has signed in
    for gsid in (game.gsid, "unknown"):
        page = await signed_in_browser.get(f"/game/done?gsid={gsid}")
        assert (page.status_code, OVER in page.text) == (404, True)


async def test_the_phone_gets_the_same_link(service: RunningService, signed_in_browser: HttpBrowser) -> None:
    game = await register_game(service)
    assert qr_code(game.answer["url"]) in (await open_question(signed_in_browser, game)).text
