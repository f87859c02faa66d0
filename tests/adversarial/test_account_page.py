"""Attacks on the account page (checklist section 4, and OP-14)."""

import json
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import and_, bindparam, func, select

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import User
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import login_tokens, users
from gatehouse.web.pages.account_request import RETURN_ADDRESSES
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, hidden_fields
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.endings import ENDINGS, NEW_PASSWORD, TEST_ORIGIN, Ending
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.service import RunningService, running_service

STALE: Final = 601
FREE: Final = {"GATEHOUSE__RATES__ENABLED": "false"}

# Every form of the account page, with fields that would change something.
FORMS: Final[dict[str, dict[str, str]]] = {
    "/account/profile": {"nick": "Mallory"},
    "/account/email": {"login": "mallory@evil.example"},
    "/account/password": {"current": PASSWORD, "password": NEW_PASSWORD},
    "/account/totp": {"otp": "000000"},
    "/account/totp/remove": {},
    "/account/passkey": {"name": "Mallory", "credential": "{}"},
    "/account/passkey/rename": {"passkey_id": "AA", "name": "Mallory"},
    "/account/passkey/remove": {"passkey_id": "AA"},
    "/account/email-code": {"on": "1"},
    "/account/recovery-codes": {},
    "/account/sessions/end": {"session_id": "x"},
    "/account/sessions/end-others": {},
    "/account/applications/revoke": {"client_id": "x"},
    "/account/look": {"lang": "de", "theme": "dark"},
    "/account/export": {},
    "/account/delete": {"login": LOGIN},
    "/confirm": {"password": PASSWORD},
}


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_url, tmp_path, environment=FREE) as running:
        yield running


async def create(service: RunningService, login: str = LOGIN, *, administrator: bool = False) -> User:
    return await service.services.accounts.administration.create(
        login=login, nick="Anna", password=PASSWORD, origin=TEST_ORIGIN, administrator=administrator
    )


@pytest.fixture
async def anna(service: RunningService) -> User:
    return await create(service)


@asynccontextmanager
async def account_browser_for(service: RunningService, login: str = LOGIN) -> AsyncIterator[AccountBrowser]:
    someone = AccountBrowser(service)
    try:
        await someone.sign_in_and_open_account(login)
        yield someone
    finally:
        await someone.client.aclose()


@pytest.fixture
async def account_browser(service: RunningService, anna: User) -> AsyncIterator[AccountBrowser]:
    async with account_browser_for(service, anna.login or "") as someone:
        yield someone


async def read_user(service: RunningService, user: User) -> User:
    return await service.services.storage.accounts.user(user.user_id)


# -- LG-20: the response means that everything has ended on every node ---------------------------------

STILL_GOOD: Final = Statement(
    lambda: (
        select(func.count().label("found"))
        .select_from(login_tokens)
        .join(users, and_(users.c.user_id == login_tokens.c.user_id, users.c.rev == login_tokens.c.rev))
        .where(login_tokens.c.user_id == bindparam("of"), users.c.blocked.is_(False))
    )
)


def good_tokens(user_id: str) -> Verb[int]:
    return int((yield STILL_GOOD(of=user_id))[0].found)


@pytest.fixture
async def nodes(installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[tuple[RunningService, RunningService]]:
    async with (
        running_service(installed_postgres_url, tmp_path) as person,
        running_service(installed_postgres_url, tmp_path, clock=person.clock) as other,
    ):
        yield person, other


def claims_of(jwt: str) -> dict[str, Any]:
    payload = jwt.split(".")[1]
    claims: dict[str, Any] = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


@pytest.mark.parametrize("ending", ENDINGS)
async def test_lg_20_every_session_and_token_is_dead_on_the_other_node_at_the_answer(
    nodes: tuple[RunningService, RunningService], ending: Ending
) -> None:
    here, there = nodes
    anna = await create(here)
    async with account_browser_for(here) as account_browser, account_browser_for(there) as elsewhere:
        login = {"login": LOGIN, "password": PASSWORD, "factor": "f", "short_token": "1"}
        body = (await here.client.post("/proxy/api/login", json=login)).json()
        assert await elsewhere.is_signed_in()
        assert await there.services.storage.runner.snapshot_read(lambda: good_tokens(anna.user_id)) == 1
        await ending(here, account_browser, anna)
        assert not await elsewhere.is_signed_in()
        assert await there.services.storage.runner.snapshot_read(lambda: good_tokens(anna.user_id)) == 0
        assert (await there.client.get(f"/?stoken={body['stoken']}")).status_code == 403
        assert await is_refused(there, claims_of(body["jwt"]))


async def is_refused(node: RunningService, claims: dict[str, Any]) -> bool:
    """A user JWT with an older epoch than its user's is refused everywhere (R2), and so is one of an unknown user."""
    try:
        user = await node.services.storage.accounts.user(claims["uid"])
    except UserNotFound:
        return True
    return bool(claims["rev"] < user.rev)


async def test_lg_20_a_session_that_works_on_one_node_works_on_the_other_until_then(
    nodes: tuple[RunningService, RunningService],
) -> None:
    here, there = nodes
    await create(here)
    async with account_browser_for(here) as account_browser:
        cookie = {"Cookie": f"gh_session={account_browser.cookies['gh_session']}"}
        assert (await there.client.get("/account", headers=cookie)).status_code == 200
        await account_browser.post_with_csrf("/account/sessions/end-others")
        assert (await there.client.get("/account", headers=cookie)).status_code == 200
        await account_browser.get("/account")
        await account_browser.submit("/sign-out")
        assert (await there.client.get("/account", headers=cookie)).status_code == 303


# -- LG-28: people end their own sessions, with a fresh proof, immediately -----------------------------


async def test_lg_28_sessions_are_listed_and_ended_on_all_nodes_after_a_fresh_proof(
    nodes: tuple[RunningService, RunningService],
) -> None:
    here, there = nodes
    await create(here)
    async with account_browser_for(here) as account_browser, account_browser_for(there) as stolen:
        await here.clock.advance(STALE)
        page = (await account_browser.get("/account")).text
        assert page.count("last seen") == 2
        response = await account_browser.submit("/account/sessions/end")
        assert response.headers["location"] == "/confirm?next=%2Faccount%2Fsessions%2Fend"
        assert await stolen.is_signed_in()
        await account_browser.confirm(password=PASSWORD)
        await account_browser.submit_and_read_notice("/account/sessions/end")
        assert not await stolen.is_signed_in()
        assert await account_browser.is_signed_in()


# -- LG-24: nothing is left to read --------------------------------------------------------------------


async def test_lg_24_no_page_of_the_account_is_kept_by_any_cache(account_browser: AccountBrowser) -> None:
    for path in ("/account", "/account/totp", "/account/passkey", "/account/delete", "/confirm"):
        response = await account_browser.get(path)
        assert response.headers["cache-control"] == "no-store"
    await account_browser.get("/account")
    response = await account_browser.submit("/sign-out")
    assert (response.headers["cache-control"], response.headers["clear-site-data"]) == ("no-store", '"cache"')
    assert (await account_browser.get("/account")).headers["location"] == "/sign-in"


async def test_lg_24_after_the_account_is_deleted_the_browser_forgets_it(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    await account_browser.get("/account/delete")
    response = await account_browser.submit("/account/delete", login=LOGIN)
    assert response.headers["clear-site-data"] == '"cache"'
    assert LOGIN not in response.text
    assert (await service.client.get("/account")).status_code == 303


# -- OP-14: export and deletion ------------------------------------------------------------------------


async def test_op_14_no_one_gets_a_copy_of_someone_else(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    bob = await create(service, "bob@studio.example")
    assert (await account_browser.post_with_csrf("/account/export", user_id=bob.user_id)).status_code == 400
    written = await account_browser.post_with_csrf("/account/export")
    assert "bob@" not in written.text
    assert (await service.client.post("/account/export")).headers["location"] == "/sign-in"


async def test_op_14_the_person_is_gone_from_every_table_and_others_are_not(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    bob = await create(service, "bob@studio.example")
    async with account_browser_for(service, "bob@studio.example") as other:
        await account_browser.get("/account/delete")
        await account_browser.submit("/account/delete", login=LOGIN)
        rows = await read_all_tables(service.services.storage)
        assert tables_that_mention(rows, "anna@") == set()
        assert tables_that_mention(rows, anna.user_id) == {"user_ids", "audit_events"}
        assert tables_that_mention(rows, "bob@") == {"users", "audit_events"}
        assert await read_user(service, bob) == bob
        assert await other.is_signed_in()


# -- LG-01, LG-03, LG-04, LG-19, LG-21 on these pages --------------------------------------------------


async def test_lg_01_a_fresh_proof_changes_the_session_id_and_kills_the_old_one(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    before = account_browser.cookies["gh_session"]
    (listed,) = await service.services.storage.sessions.sessions_of_user(anna.user_id, service.clock.now())
    await service.clock.advance(STALE)
    await account_browser.get("/confirm?next=/account/totp")
    await account_browser.submit("/confirm", password=PASSWORD)
    assert account_browser.cookies["gh_session"] != before
    old = await service.client.get("/account", headers={"Cookie": f"gh_session={before}"})
    assert old.headers["location"] == "/sign-in"
    (renewed,) = await service.services.storage.sessions.sessions_of_user(anna.user_id, service.clock.now())
    assert (renewed.session_id, renewed.created_at, renewed.ends_at) == (
        listed.session_id,
        listed.created_at,
        listed.ends_at,
    )


async def test_lg_03_no_form_of_the_account_works_without_this_sessions_own_token(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await create(service, "bob@studio.example")
    before = await read_user(service, anna)
    async with account_browser_for(service, "bob@studio.example") as bob:
        foreign = hidden_fields((await bob.get("/account")).text)["csrf"]
    strange = AccountBrowser(service)
    unsigned = hidden_fields((await strange.get("/sign-in")).text)["csrf"]
    await strange.client.aclose()
    for path, fields in FORMS.items():
        for csrf in ("", foreign, unsigned, "é"):
            response = await account_browser.client.post(path, data={**fields, "csrf": csrf})
            assert response.status_code == 403, path
        own = hidden_fields((await account_browser.get("/account")).text)["csrf"]
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            response = await account_browser.client.post(path, data={**fields, "csrf": own}, headers=headers)
            assert response.status_code == 403, path
        plain = await account_browser.client.post(
            path, content=f"csrf={own}".encode(), headers={"Content-Type": "text/plain"}
        )
        assert plain.status_code == 415, path
        assert (await account_browser.client.get(path + "?csrf=" + own)).status_code in (200, 303, 405)
    assert await read_user(service, anna) == before
    assert await account_browser.is_signed_in()
    assert await new_messages(service) == []


@pytest.mark.parametrize(
    "goal",
    [
        "//evil.example",
        "/\\evil.example",
        "/%09/evil.example",
        "https:evil.example",
        "/%5cevil.example",
        "///evil.example",
        "javascript:alert(1)",
        "/@evil.example",
        "/..//evil.example",
        "%2f%2fevil.example",
        "https://evil.example/account/totp",
        "/account/totp/../../../evil",
        "/account/totp\r\nX: y",
        "x" * 7_000,
        "/consoles",
        "/console//evil.example",
        "/console/../sign-out",
        "/console@evil.example",
        "/console?to=//evil.example",
        "/console\\evil.example",
        "/sign-out",
    ],
)
async def test_lg_04_a_fresh_proof_leads_to_an_address_of_our_own_list_only(
    service: RunningService, account_browser: AccountBrowser, goal: str
) -> None:
    fresh = await account_browser.client.get("/confirm", params={"next": goal})
    assert fresh.headers["location"] == "/account"
    await service.clock.advance(STALE)
    page = await account_browser.client.get("/confirm", params={"next": goal})
    assert page.status_code == 200
    assert "interaction" not in hidden_fields(page.text)
    account_browser.page = page
    proved = await account_browser.submit("/confirm", password=PASSWORD, interaction=goal)
    assert (proved.status_code, proved.headers["location"]) == (303, "/account")


def test_lg_04_that_list_names_pages_of_the_account_and_the_documentation_only() -> None:
    assert all(address.startswith("/account") or address == "/docs" for address in RETURN_ADDRESSES.values())


async def test_lg_19_no_form_says_that_an_address_is_verified_or_names_a_field_it_does_not_have(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    before = await read_user(service, anna)
    for path, fields in FORMS.items():
        for more in ({"email_verified": "true"}, {"user_id": "1"}, {"rev": "0"}, {"tags": "staff"}):
            assert (await account_browser.post_with_csrf(path, **fields, **more)).status_code == 400, path
    assert await read_user(service, anna) == before


@pytest.mark.parametrize("taken", ["bob@studio.example", "BOB@Studio.Example", " bob@STUDIO.example "])
async def test_lg_19_no_spelling_takes_over_someone_elses_address(
    service: RunningService, account_browser: AccountBrowser, anna: User, taken: str
) -> None:
    bob = await create(service, "bob@studio.example")
    await account_browser.submit_and_read_notice("/account/email", login=taken)
    (message,) = await new_messages(service)
    assert message.to == "bob@studio.example"
    assert "/verify-email" not in message.text
    assert [(await read_user(service, person)).login for person in (anna, bob)] == [LOGIN, "bob@studio.example"]


async def test_lg_19_the_new_address_counts_only_after_its_own_proof_and_the_old_one_is_told(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await account_browser.submit_and_read_notice("/account/email", login="anna@new.example")
    waiting = await read_user(service, anna)
    assert (waiting.login, waiting.email_verified) == (LOGIN, False)
    await account_browser.get(await link_in_new_message(service))
    assert (await read_user(service, anna)).login == LOGIN
    await account_browser.submit("/verify-email")
    moved = await read_user(service, anna)
    assert (moved.login, moved.email_verified) == ("anna@new.example", True)
    assert LOGIN in {message.to for message in await new_messages(service)}


HOSTILE: Final = "\"><script>alert(1)</script>{{7*7}}${7*7}'"


async def test_lg_21_whatever_a_person_calls_things_is_shown_escaped_and_never_evaluated(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    await account_browser.submit_and_read_notice("/account/profile", nick=HOSTILE[:64])
    intruder = AccountBrowser(service, agent=f"Firefox/1 {HOSTILE}")
    await intruder.sign_in_and_open_account()
    await intruder.client.aclose()
    await account_browser.submit_and_read_notice("/account/email", login="{{7*7}}@new.example")
    page = (await account_browser.get("/account")).text
    typed = (await account_browser.submit("/account/email", login=HOSTILE)).text
    for page_shown in (page, typed):
        assert "<script>alert" not in page_shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}${7*7}&#39;" in page_shown
    assert "{{7*7}}@new.example" in page
