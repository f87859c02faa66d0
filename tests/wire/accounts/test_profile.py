"""Names, user name and time zone of an account, and what its claims tell (R9)."""

import json
import re

import httpx2
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.accounts.own_account.claims import ProfileClaims
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, AccountBrowser, HttpBrowser
from tests.support.service import RunningService
from tests.wire.accounts.test_sign_in import comparable_text

DAY = 86_400
NAMES = {"name": "Anna Berg", "given_name": "Anna", "family_name": "Berg", "zoneinfo": "Europe/Berlin"}


async def read_user(service: RunningService, user: User) -> User:
    return await service.services.storage.accounts.user(user.user_id)


async def choose_username(account_browser: AccountBrowser, username: str) -> httpx2.Response:
    await account_browser.get("/account")
    return await account_browser.submit("/account/username", username=username)


async def test_profile_is_saved_exported_and_erased(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    assert await account_browser.submit_and_read_notice("/account/profile", nick="Anna", **NAMES) == "Profile saved"
    assert (await choose_username(account_browser, " Anna.Berg ")).status_code == 303
    stored = await read_user(service, anna)
    assert (stored.name, stored.username, stored.updated_at) == ("Anna Berg", "anna.berg", service.clock.now())
    page = (await account_browser.get("/account")).text
    assert all(f'value="{value}"' in page for value in (*NAMES.values(), "anna.berg"))
    exported = json.loads((await account_browser.submit("/account/export")).text)["account"]
    assert exported["username"] == "anna.berg"
    assert {name: exported[name] for name in NAMES} == NAMES
    records = await service.services.storage.audit.newest_records(2, anna.user_id, "user.profile_changed")
    assert {record.details["field"] for record in records} == {
        "username",
        "name, given_name, family_name, zoneinfo",
    }
    await account_browser.get("/account/delete")
    await account_browser.submit("/account/delete", login=LOGIN)
    assert await service.services.storage.accounts.user_by_username("anna.berg") is None


async def test_invalid_profile_field_is_refused_and_shown_again(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    for field, value, problem in (
        ("name", "x" * 129, "a name must be"),
        ("family_name", "Berg\u202e", "a name must be"),
        ("zoneinfo", "Europe/../etc", "Choose a time zone"),
    ):
        response = await account_browser.submit("/account/profile", nick="New", **{field: value})
        assert response.status_code == 400
        assert problem in account_browser.problem_in(response)
        assert 'value="New"' in response.text
    assert await read_user(service, anna) == anna


async def test_lg_30_user_name_follows_the_rules_and_is_chosen_every_30_days(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    for username in ("ab", "x" * 33, "12345", "an na", "änna", "ad.min", "Support", "...", "anna@x"):
        response = await choose_username(account_browser, username)
        assert response.status_code == 400, username
        assert re.search("Use|reserved", account_browser.problem_in(response)), username
    assert (await choose_username(account_browser, "anna")).status_code == 303
    recent = await choose_username(account_browser, "berg")
    assert (recent.status_code, account_browser.problem_in(recent)) == (
        409,
        "You can change your user name every 30 days.",
    )
    await service.clock.advance(30 * DAY)
    await account_browser.sign_in_and_open_account()
    assert (await choose_username(account_browser, "berg")).status_code == 303
    assert (await read_user(service, anna)).username == "berg"


async def test_lg_30_taken_user_name_is_refused_and_needs_a_fresh_sign_in(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    other = await service.services.accounts.administration.create(
        login="berg@studio.example", nick="Berg", password=None, origin=AuditOrigin(actor="test")
    )
    await service.services.accounts.profile_claims.username_of(other)
    taken = await choose_username(account_browser, "berg")
    assert (taken.status_code, account_browser.problem_in(taken)) == (409, "This user name is not available.")
    await service.clock.advance(3_600)
    assert (await choose_username(account_browser, "anna")).headers["location"].startswith("/confirm")
    assert (await read_user(service, anna)).username is None


async def test_lg_05_user_name_signs_in_with_the_defenses_of_an_address(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, anna: User
) -> None:
    await choose_username(account_browser, "anna.berg")
    assert (await browser_client.sign_in(" Anna.Berg")).status_code == 303
    api = await service.client.post("/proxy/api/login", json={"login": "anna.berg", "password": "wrong"})
    assert api.json() == {"status": "LOGINERROR"}
    stranger = HttpBrowser(service)
    wrong = await stranger.sign_in("anna.berg", "not the password")
    unknown = await stranger.sign_in("no.one", "not the password")
    assert [wrong.status_code, unknown.status_code] == [403, 403]
    assert comparable_text(wrong) == comparable_text(unknown)
    closed = [
        [(await stranger.sign_in(name, "wrong")).status_code for _ in range(10)] for name in ("anna.berg", "no.one")
    ]
    assert closed[0].count(429) > 0
    assert abs(closed[0].count(429) - closed[1].count(429)) <= 1  # the API call above was one attempt
    # An address is counted apart from the user name: equal counts would tell that both are one account.
    assert (await stranger.sign_in(LOGIN)).status_code == 303
    await stranger.client.aclose()
    # A browser that has signed in before is not locked out.
    assert (await browser_client.sign_in("anna.berg")).status_code == 303
    assert anna.login == LOGIN


async def test_profile_claims_tell_what_is_known_and_store_a_user_name_made_from_the_nick(
    service: RunningService, anna: User
) -> None:
    claims: ProfileClaims = service.services.accounts.profile_claims
    first = await claims.claims_of(anna)
    assert first == {
        "name": "Anna",
        "preferred_username": "anna",
        "nickname": "Anna",
        "locale": "en",
        "updated_at": anna.reg_time,
    }
    stored = await read_user(service, anna)
    assert (stored.username, stored.username_at) == ("anna", 0)
    full = replace(stored, **NAMES, picture="ab" * 32, updated_at=7)
    told = await claims.claims_of(full)
    assert told == {
        **NAMES,
        "preferred_username": "anna",
        "nickname": "Anna",
        "picture": f"{service.services.base_url}/images/{'ab' * 32}",
        "locale": "en",
        "updated_at": 7,
    }
