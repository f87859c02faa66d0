"""Terms and the age gate: sign-in in the browser, login operations, export and removal (checklist TM-01 to TM-07)."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.accounts.terms.acceptance import LINK_SECONDS
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.times import DAY
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser
from tests.support.database_contents import read_all_tables
from tests.support.game import poll_ended_session, register_game, wait_until_held
from tests.support.geoip import write_geoip
from tests.support.guests import Device, open_upgrade, register_upgrade, turn_guests_on
from tests.support.oauth import a_public_client, an_oidc_client, oauth_error, query_of, success_body
from tests.support.permission_builders import create_application, set_fields
from tests.support.service import RunningService, running_service
from tests.support.studio import a_studio
from tests.support.terms import terms_until_asked_again
from tests.wire.oauth.test_api_access import API, VERIFIER, api_request
from tests.wire.oauth.test_device import ask as ask_for_device
from tests.wire.oauth.test_device import poll as poll_with_device

ORIGIN = AuditOrigin(actor="test")
TERMS = {"title": "Terms of use", "url": "https://studio.example/terms", "version": "1"}
OPEN = {"login": {"can": ["*"]}}
GERMANY = {"127.0.0.0/8": {"country": {"iso_code": "DE"}}}
PRIVACY = {"title": "Privacy", "url": "https://studio.example/privacy", "version": "2026-11"}


async def publish(service: RunningService, document_id: str = "terms", **settings: object) -> None:
    wanted = {f"terms.{document_id}.{name}": value for name, value in settings.items()}
    await service.services.settings_editor.save(wanted, ORIGIN)


async def log_in(service: RunningService, **fields: Any) -> dict[str, Any]:
    ask = {"login": LOGIN, "password": PASSWORD, "factor": "device", **fields}
    body: dict[str, Any] = (await service.client.post("/proxy/api/login", json=ask)).json()
    return body


async def accepted(service: RunningService, user: User) -> dict[str, str]:
    _, found = await service.services.storage.terms.terms_of_user(user.user_id)
    return {one.document: one.version for one in found}


async def sign_in_to(browser: HttpBrowser, path: str) -> httpx2.Response:
    """Open the address, sign in if asked to, and return the page or the last redirect."""
    await browser.get(path)
    await browser.follow()
    return await browser.post("/sign-in", login=LOGIN, password=PASSWORD)


async def open_link(browser: HttpBrowser, url: str) -> httpx2.Response:
    return await browser.get(httpx2.URL(url).raw_path.decode())


async def test_tm_01_sign_in_to_a_client_asks_once_for_each_version(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await publish(service, **TERMS)
    await publish(service, "privacy", **PRIVACY)
    shelf = await an_oidc_client(service, first_party=True)
    response = await sign_in_to(browser_client, shelf.authorize_path())
    assert response.headers["location"].startswith("/terms?interaction=")
    page = await browser_client.follow()
    assert all(text in page.text for text in (PRIVACY["url"], "Terms of use", "Version 2026-11"))
    response = await browser_client.post("/terms", decision="accept")
    assert "code" in query_of(response.headers["location"])
    assert await accepted(service, anna) == {"terms": "1", "privacy": "2026-11"}
    assert "code" in query_of((await browser_client.get(shelf.authorize_path())).headers["location"])
    await publish(service, version="2")
    silent = await browser_client.get(shelf.authorize_path(prompt="none"))
    assert query_of(silent.headers["location"])["error"] == "interaction_required"
    response = await browser_client.get(shelf.authorize_path())
    assert response.headers["location"].startswith("/terms?interaction=")
    page = await browser_client.follow()
    assert ("Version 2" in page.text, "Privacy" in page.text) == (True, False)
    declined = await browser_client.post("/terms", decision="decline")
    assert query_of(declined.headers["location"])["error"] == "access_denied"
    assert await accepted(service, anna) == {"terms": "1", "privacy": "2026-11"}


async def test_client_gets_the_person_who_accepts_the_terms_in_another_window(
    service: RunningService, browser_client: HttpBrowser, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = await an_oidc_client(service, first_party=True)
    await browser_client.sign_in(anna.login or "")
    monkeypatch.setattr(service.services.sign_in_flows, "find_terms_for", terms_until_asked_again())
    response = await browser_client.get(shelf.authorize_path())
    assert "code" in query_of(response.headers["location"])


async def test_tm_02_only_the_version_that_was_shown_is_accepted_by_the_person_who_was_asked(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, anna: User
) -> None:
    await publish(service, **TERMS)
    shelf = await an_oidc_client(service, first_party=True)
    await sign_in_to(browser_client, shelf.authorize_path())
    page = await browser_client.follow()
    handle = str(page.url.params["interaction"])
    await other.get("/forgot")
    stranger = await other.post("/terms", interaction=handle, version="terms:1", decision="accept")
    assert stranger.status_code == 400
    bare = await service.client.post("/terms", data={"interaction": handle, "decision": "accept"})
    assert bare.status_code == 403
    await publish(service, version="2")
    response = await browser_client.post("/terms", decision="accept")
    assert (response.status_code, "changed in the meantime" in response.text) == (400, True)
    assert await accepted(service, anna) == {}
    assert (await browser_client.post("/terms", decision="accept")).status_code == 303
    assert await accepted(service, anna) == {"terms": "2"}


async def test_tm_03_login_answers_terms_after_the_password_and_the_link_accepts_them(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await publish(service, **TERMS)
    assert (await log_in(service, password="wrong"))["status"] == "LOGINERROR"
    answer = await log_in(service)
    assert (set(answer), answer["status"], answer["version"]) == ({"status", "url", "version"}, "TERMS", "terms:1")
    url: str = answer["url"]
    assert url.startswith(f"{service.base_url}/terms?token=")
    for damaged in (url[:-1] + ("0" if url[-1] != "0" else "1"), url.replace(anna.user_id, "1234567890"), url + "0"):
        assert (await open_link(browser_client, damaged)).status_code == 403
    assert "Terms of use" in (await open_link(browser_client, url)).text
    assert "Return to the game" in (await browser_client.post("/terms", decision="accept")).text
    assert (await log_in(service))["status"] == "OK"
    await service.clock.advance(LINK_SECONDS)
    assert (await open_link(browser_client, url)).status_code == 403


async def test_tm_04_polls_wait_while_the_page_asks_and_end_when_the_person_declines(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    application = await create_application(service.services.storage, name="Sky Raiders", settings=OPEN)
    await publish(service, **TERMS, applications=[str(application.application_id)])
    game = await register_game(service, app_id=application.application_id, factor="device")
    polling = game.start_poll()
    await wait_until_held(service)
    await sign_in_to(browser_client, f"/?gsid={game.gsid}")
    page = await browser_client.follow()
    assert (page.url.path, "Sky Raiders" in page.text, polling.done()) == ("/terms", True, False)
    await browser_client.post("/terms", decision="accept")
    assert (await browser_client.follow()).url.path == "/sign-in/confirm"
    assert not polling.done()
    await browser_client.post("/sign-in/confirm", decision="confirm")
    assert (await polling).json()["status"] == "OK"
    await publish(service, version="2")
    declined = await register_game(service, app_id=application.application_id, factor="device")
    await browser_client.get(f"/?gsid={declined.gsid}")
    await browser_client.follow()
    response = await browser_client.post("/terms", decision="decline")
    assert response.headers["location"].startswith("/game/cancelled")
    assert (await poll_ended_session(declined)).json()["status"] == "ERROR"
    assert await accepted(service, anna) == {"terms": "1"}
    assert (await log_in(service))["status"] == "OK"  # of another application


async def test_tm_05_documents_are_for_their_applications_and_countries(installed_url: str, tmp_path: Path) -> None:
    geoip = {"GATEHOUSE__ACCOUNTS__GEOIP_FILE": str(write_geoip(tmp_path / "geo.mmdb", GERMANY))}
    async with running_service(installed_url, tmp_path, environment=geoip) as service:
        for login, country in ((LOGIN, ""), ("bo@studio.example", "US")):
            await service.services.accounts.administration.create(
                login=login, nick="Anna", password=PASSWORD, origin=ORIGIN, more={"country": country}
            )
        await publish(service, **TERMS)
        await publish(service, "german", **TERMS, countries=["DE", "AT"], replaces="terms")
        game = (await create_application(service.services.storage, name="Game", settings=OPEN)).application_id
        await publish(service, "game", **TERMS, applications=[str(game)])
        assert (await log_in(service))["version"] == "german:1"
        assert (await log_in(service, login="bo@studio.example"))["version"] == "terms:1"
        other = (await create_application(service.services.storage, name="Other", settings=OPEN)).application_id
        for named in ({"app_id": game}, {"app_id": other, "gapp_id": game}):  # every named application counts
            assert (await log_in(service, login="bo@studio.example", **named))["version"] == "game:1,terms:1"
        await publish(service, "german", enabled=False)
        assert (await log_in(service))["version"] == "terms:1"


@pytest.mark.both_databases
@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("country", ["", "DE"])
async def test_mt_17_terms_for_a_country_stand_for_those_they_replace(
    installed_url: str, tmp_path: Path, country: str, *, everywhere: bool
) -> None:
    """The token endpoint sees no address of the person; a person whom it refuses has nothing left to accept."""
    geoip = {"GATEHOUSE__ACCOUNTS__GEOIP_FILE": str(write_geoip(tmp_path / "geo.mmdb", GERMANY))}
    async with running_service(installed_url, tmp_path, environment=geoip) as service:
        studio, applications = await a_studio(service), service.services.storage.applications
        await applications.edit_application(studio.shop.application_id, set_fields(api=API))
        await service.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN, more={"country": country}
        )
        agent, browser = await a_public_client(service, "agent", first_party=True), HttpBrowser(service)
        of_api: dict[str, Any] = {**TERMS, "applications": [str(studio.shop.application_id)]}
        await publish(service, **of_api, minimum_age=18)
        german: dict[str, Any] = {**(TERMS if everywhere else of_api), "countries": ["DE", "AT"], "replaces": "terms"}
        await publish(service, "german", **german, minimum_age=16)
        await browser.sign_in(LOGIN)
        await browser.get(agent.authorize_path(**api_request()))
        await browser.follow()
        accepted = await browser.post("/terms", decision="accept", birth="2009-06-01")
        code = query_of(accepted.headers["location"])["code"]
        tokens = await agent.tokens(code, code_verifier=VERIFIER)
        refreshed = success_body(await agent.refresh(tokens["refresh_token"]))
        await publish(service, version="2")  # not for Germany
        refreshed = success_body(await agent.refresh(refreshed["refresh_token"]))
        await publish(service, "german", version="2")
        answer = await agent.refresh(refreshed["refresh_token"])
        assert answer.status_code == (200 if everywhere else 400), answer.text  # for all: asked at sign-ins only
        await browser.client.aclose()


async def test_tm_06_acceptance_is_exported_and_erased_with_the_person(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await publish(service, **TERMS, minimum_age=16)
    await open_link(account_browser, (await log_in(service))["url"])
    await account_browser.post("/terms", decision="accept", birth="2001-05-31")
    exported = await service.services.personal_data.export.export_user(anna, ORIGIN)
    assert [(one.document, one.version) for one in exported.terms] == [("age", "21"), ("terms", "1")]
    records = await service.services.storage.audit.unsealed_records(100)
    assert [record.details for record in records if record.event == "user.terms_accepted"] == [{"terms": "1"}]
    await service.services.accounts.erasure.erase(anna, ORIGIN)
    rows = await read_all_tables(service.services.storage)
    assert (len(rows["users"]), rows["accepted_terms"]) == (0, [])


async def test_tm_07_too_young_is_told_kindly_and_leaves_nothing_behind(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    """The first answer counts for a day in this browser, and no one else knows it."""
    await publish(service, **TERMS, minimum_age=16)
    page = await open_link(browser_client, (await log_in(service))["url"])
    assert "16" not in re.sub("<[^>]*>", "", page.text)  # a hint would invite a wrong date
    for birth in ("", "tomorrow", "1700-01-01", "2999-01-01", "2001-02-30"):
        assert (await browser_client.post("/terms", decision="accept", birth=birth)).status_code == 400
    before = await service.services.storage.audit.unsealed_records(100)
    response = await browser_client.post("/terms", decision="accept", birth="2015-06-01")
    assert "Not available yet" in response.text
    assert await accepted(service, anna) == {}
    assert await service.services.storage.audit.unsealed_records(100) == before
    for _ in range(2):
        await open_link(browser_client, (await log_in(service))["url"])
        again = await browser_client.post("/terms", decision="accept", birth="2008-06-01")
        assert ("Not available yet" in again.text, await accepted(service, anna)) == (True, {})
    forged = f"age.21.{service.clock.now() + DAY}.{'0' * 64}"
    for cookie in (forged, browser_client.cookies["gh_age"].replace("age.0", "age.21")):
        assert service.services.sign_in.terms.read_remembered_age(cookie) is None
    await service.clock.advance(DAY)
    await open_link(browser_client, (await log_in(service))["url"])
    await browser_client.post("/terms", decision="accept", birth="2008-06-01")
    assert await accepted(service, anna) == {"terms": "1", "age": "18"}
    await publish(service, minimum_age=21)
    assert (await log_in(service))["version"] == "age"


async def test_tm_07_no_answer_depends_on_the_minimum_age_but_the_decision(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    """Otherwise a child could read what to type, in a hidden field or in the answer of a login."""
    del anna
    seen: dict[int, list[object]] = {}
    url = ""
    for minimum_age in (13, 16, 21):
        await publish(service, **TERMS, minimum_age=minimum_age)
        answer = await log_in(service)
        url = url or answer["url"]
        pages = [await open_link(browser_client, url)]
        pages.append(await browser_client.post("/terms", decision="accept", birth="tomorrow"))
        pages.append(await browser_client.post("/terms", decision="accept", birth="2020-06-01"))
        seen[minimum_age] = [answer["version"], *((page.status_code, page.text) for page in pages)]
        browser_client.client.cookies.delete("gh_age")
    assert seen[13][0] == "terms:1,age"
    assert seen[13] == seen[16] == seen[21]


async def test_minimum_age_that_changes_while_the_page_is_open_counts(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await publish(service, **TERMS, minimum_age=13)
    await open_link(browser_client, (await log_in(service))["url"])
    await publish(service, minimum_age=21)
    response = await browser_client.post("/terms", decision="accept", birth="2010-06-01")
    assert ("Not available yet" in response.text, await accepted(service, anna)) == (True, {})


async def test_device_grant_asks_for_the_terms(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await publish(service, **TERMS)
    tv = await a_public_client(service, "tv", name="Sofa TV", redirect_uris=(), device_grant=True)
    ask = {"scope": "openid", "client_id": tv.client.client_id}
    codes = (await service.client.post("/proxy/oauth/device_authorization", data=ask)).json()
    await browser_client.sign_in(anna.login or "")
    await browser_client.get("/device")
    await browser_client.post("/device", user_code=codes["user_code"])
    assert (await browser_client.follow()).url.path == "/terms"
    await browser_client.post("/terms", decision="accept")
    assert (await browser_client.follow()).url.path == "/sign-in/confirm"


async def test_tm_04_device_of_a_person_who_declines_the_terms_is_denied(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    await publish(service, **TERMS)
    tv = await a_public_client(service, "tv", name="Sofa TV", redirect_uris=(), device_grant=True)
    device = await ask_for_device(tv)
    await browser_client.sign_in(anna.login or "")
    await browser_client.get("/device")
    await browser_client.post("/device", user_code=device["user_code"])
    assert (await browser_client.follow()).url.path == "/terms"
    await browser_client.post("/terms", decision="decline")
    assert oauth_error(await poll_with_device(tv, device["device_code"])) == (400, "access_denied")
    assert await accepted(service, anna) == {}


async def test_account_pages_need_no_acceptance(service: RunningService, account_browser: AccountBrowser) -> None:
    await publish(service, **TERMS)
    assert (await account_browser.get("/account")).status_code == 200


async def test_an_incomplete_document_is_refused(service: RunningService) -> None:
    for settings, words in (
        ({"title": "Terms"}, "terms.terms.url is missing"),
        ({**TERMS, "url": "javascript:alert(1)"}, "must be a URL"),
        ({**TERMS, "countries": ["Germany"]}, "country code"),
        ({**TERMS, "minimum_age": 12}, "must be one of"),
        ({**TERMS, "version": "a,b"}, "like 2026-11"),
    ):
        with pytest.raises(Exception, match=words):
            await publish(service, **settings)


async def test_tm_06_acceptance_goes_with_the_person_when_a_guest_is_upgraded(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await turn_guests_on(service)
    device = Device()
    guest = await device.log_in(service, factor="pc")
    game = await register_upgrade(service, device)
    await service.clock.advance(1)
    await browser_client.get("/register")
    new = "kim@studio.example"
    await browser_client.post("/register", login=new, nick="Kim", password=PASSWORD)
    await publish(service, **TERMS)
    assert (await open_upgrade(browser_client, game, new)).url.path == "/terms"
    await browser_client.post("/terms", decision="accept")
    await browser_client.follow()
    await browser_client.post("/sign-in/confirm", decision="confirm", code=game.answer["code"])
    kept = await service.services.storage.accounts.user(guest["user_id"])
    assert (kept.login, await accepted(service, kept)) == (new, {"terms": "1"})


async def test_tm_03_guest_accepts_the_terms_by_the_link(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    await turn_guests_on(service)
    await publish(service, **TERMS)
    device = Device()
    answer = await device.log_in(service, factor="pc")
    assert (answer["status"], answer["version"], "jwt" in answer) == ("TERMS", "terms:1", False)
    await open_link(browser_client, answer["url"])
    await browser_client.post("/terms", decision="accept")
    assert (await device.log_in(service, factor="pc"))["status"] == "OK"
    assert "gh_session" not in browser_client.cookies
