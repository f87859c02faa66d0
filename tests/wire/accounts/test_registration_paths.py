"""A registration and a reset go on where the person wanted to go (checklist RG-01 to RG-06, docs/decisions/0050)."""

import re

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser, totp_code
from tests.support.builders import a_record
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.game import register_game
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.oauth import RelyingPartyClient, an_oidc_client, query_of
from tests.support.service import RunningService

BOB = "bob@studio.example"
NEW_PASSWORD = "an entirely different phrase"
ORIGIN = AuditOrigin(actor="test")
SHOWN_CODE = re.compile(r"<strong>(\d{4} \d{4})</strong>")
WRONG = "0000 0000"  # a right one once in a hundred million runs
SITE = "https://shelf.example/"


@pytest.fixture
async def client(service: RunningService) -> RelyingPartyClient:
    return await an_oidc_client(service, name="Shelf", first_party=True, client_uri=SITE)


async def register_from(browser: HttpBrowser, client: RelyingPartyClient, login: str = BOB) -> httpx2.Response:
    await browser.get(client.authorize_path())
    page = await browser.follow()
    (path,) = re.findall(r'href="(/register\?interaction=[^"]+)"', page.text)
    page = await browser.get(path)
    assert "to continue to <strong><bdi>Shelf" in page.text
    return await browser.post("/register", login=login, nick="Bob", password=PASSWORD)


async def state_of(browser: HttpBrowser) -> str:
    return str((await browser.client.get("/register/state")).json()["state"])


async def find_bob(service: RunningService) -> User:
    user = await service.services.storage.accounts.user_by_login(BOB)
    assert user is not None
    return user


def is_signed_in(browser: HttpBrowser) -> bool:
    return "gh_session" in browser.cookies


async def test_rg_01_link_in_the_browser_that_registered_signs_in_and_goes_on_to_the_application(
    service: RunningService, browser_client: HttpBrowser, client: RelyingPartyClient
) -> None:
    sent = await register_from(browser_client, client)
    assert "Shelf" in sent.text
    assert await state_of(browser_client) == "waiting"
    assert (await browser_client.get("/register/continue")).status_code == 200
    link = await link_in_new_message(service)
    page = await browser_client.get(link)
    assert "Confirm and continue to Shelf" in page.text
    assert not (await find_bob(service)).email_verified
    done = await browser_client.post("/verify-email")
    assert done.status_code == 303
    answer = query_of(done.headers["location"])
    assert done.headers["location"].startswith(client.redirect_uri)
    assert (await client.tokens(answer["code"]))["access_token"]
    assert await state_of(browser_client) == "confirmed"
    assert (await browser_client.get("/register/continue")).headers["location"] == SITE
    assert (await browser_client.get(link)).status_code == 403
    bob = await find_bob(service)
    assert (bob.email_verified, bob.password_hash is not None) == (True, True)


async def test_rg_01_link_goes_on_after_the_sign_in_page_has_expired(
    service: RunningService, browser_client: HttpBrowser, client: RelyingPartyClient
) -> None:
    await register_from(browser_client, client)
    await service.clock.advance(1_200)
    await browser_client.get(await link_in_new_message(service))
    await browser_client.post("/verify-email")
    done = await browser_client.follow()
    assert done.headers["location"].startswith(client.redirect_uri)


async def test_rg_02_link_in_another_browser_signs_no_one_in_and_its_code_works_in_the_first_one(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, client: RelyingPartyClient
) -> None:
    await register_from(browser_client, client)
    waiting = browser_client.page
    link = await link_in_new_message(service)
    page = await other.get(link)
    (code,) = SHOWN_CODE.findall(page.text)
    assert "Continue here instead" in page.text
    assert SHOWN_CODE.findall((await other.get(link)).text) == [code]  # a scanner that opens it changes nothing
    assert (await state_of(browser_client), is_signed_in(other)) == ("waiting", False)
    assert not (await find_bob(service)).email_verified

    refused = await other.post("/verify-email")
    assert (refused.status_code, is_signed_in(other)) == (400, False)
    await other.get("/register")
    stolen = await other.post("/register/code", login=BOB, otp=code)
    assert (stolen.status_code, is_signed_in(other)) == (403, False)

    browser_client.page = waiting
    wrong = await browser_client.post("/register/code", otp=WRONG)
    assert (wrong.status_code, "Wrong code" in wrong.text) == (403, True)
    done = await browser_client.post("/register/code", otp=code.replace(" ", ""))
    assert done.headers["location"].startswith(client.redirect_uri)
    assert (is_signed_in(browser_client), is_signed_in(other)) == (True, False)
    assert (await other.get(link)).status_code == 403
    assert (await other.sign_in(BOB)).status_code == 303  # with the password that was chosen


async def test_rg_03_code_of_a_registration_ends_after_five_wrong_ones_with_and_without_an_account(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, anna: User
) -> None:
    pages = []
    for login in (BOB, anna.login or ""):
        await browser_client.get("/register")
        page = await browser_client.post("/register", login=login, nick="Bob", password=PASSWORD)
        answers = [await browser_client.post("/register/code", otp=WRONG) for _ in range(6)]
        assert ["Wrong code" in answer.text for answer in answers] == [True] * 4 + [False] * 2
        assert await state_of(browser_client) == "over"
        pages.append(re.sub(r'name="csrf" value="[^"]+"', "", page.text).replace(login, ""))
    assert pages[0] == pages[1]
    confirmation, _told = await new_messages(service)
    link = re.findall(r"/verify-email\?token=\S+", confirmation.text)[0]
    page = await other.get(link)
    assert SHOWN_CODE.findall(page.text) == []  # no browser waits for it any more
    assert "Continue here instead" in page.text


async def test_rg_04_registration_finished_elsewhere_needs_a_new_password_and_signs_in_only_there(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, client: RelyingPartyClient
) -> None:
    await register_from(browser_client, client)
    await browser_client.sign_in(BOB)  # before the proof: this session ends with it
    link = await link_in_new_message(service)
    await other.get(link)
    weak = await other.post("/verify-email", password="short")
    assert (weak.status_code, "at least 10 characters" in weak.text) == (400, True)
    await other.post("/verify-email", password=NEW_PASSWORD)
    arrived = await other.client.get("/account")
    assert arrived.status_code == 200
    assert (await browser_client.client.get("/account")).status_code == 303
    assert await state_of(browser_client) == "elsewhere"
    told = await browser_client.get("/register/continue")
    assert "Finished in another browser" in told.text
    assert (await browser_client.sign_in(BOB)).status_code == 403
    assert (await browser_client.sign_in(BOB, NEW_PASSWORD)).status_code == 303


async def test_rg_04_registration_finished_elsewhere_goes_on_to_the_application_itself(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, client: RelyingPartyClient
) -> None:
    await register_from(browser_client, client)
    await other.get(await link_in_new_message(service))
    done = await other.post("/verify-email", password=NEW_PASSWORD)
    assert (done.status_code, done.headers["location"]) == (303, SITE)


async def test_rg_05_stranger_who_registers_an_address_gets_nothing_from_its_owner(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, client: RelyingPartyClient
) -> None:
    """The owner opens the stranger's link, and goes on in their own browser."""
    await register_from(other, client)
    link = await link_in_new_message(service)
    await browser_client.get(link)
    await browser_client.post("/verify-email", password=NEW_PASSWORD)
    assert (is_signed_in(browser_client), is_signed_in(other)) == (True, False)
    gone = await other.get("/register/continue")
    assert "Finished in another browser" in gone.text
    assert (await other.sign_in(BOB)).status_code == 403


async def test_rg_05_blocked_account_is_not_confirmed_and_its_erasure_leaves_nothing(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, client: RelyingPartyClient
) -> None:
    await register_from(browser_client, client)
    waiting = browser_client.page
    link = await link_in_new_message(service)
    (code,) = SHOWN_CODE.findall((await other.get(link)).text)
    bob = await find_bob(service)
    accounts = service.services.storage.accounts
    await accounts.set_blocked(bob.user_id, a_record(), blocked=True, now=service.clock.now())
    browser_client.page = waiting
    refused = await browser_client.post("/register/code", otp=code)
    assert (refused.status_code, is_signed_in(browser_client)) == (403, False)
    assert (await browser_client.get(link)).status_code == 403
    await service.services.accounts.erasure.erase(bob, ORIGIN)
    assert await state_of(browser_client) == "over"
    left = await read_all_tables(service.services.storage)
    assert tables_that_mention(left, bob.user_id) == {"user_ids", "audit_events"}


async def test_rg_06_reset_signs_in_after_the_second_factor_and_goes_on(
    service: RunningService, browser_client: HttpBrowser, anna: User, client: RelyingPartyClient
) -> None:
    _ = anna
    await browser_client.get(client.authorize_path())
    page = await browser_client.follow()
    (path,) = re.findall(r'href="(/forgot\?[^"]+)"', page.text)
    form = await browser_client.get(path.replace("&amp;", "&").replace("login=", "login=anna@studio.example"))
    assert 'value="anna@studio.example"' in form.text
    await browser_client.post("/forgot", login="anna@studio.example")
    page = await browser_client.get(await link_in_new_message(service))
    assert "Save and continue to Shelf" in page.text
    done = await browser_client.post("/reset", password=NEW_PASSWORD)
    assert done.headers["location"].startswith(client.redirect_uri)


async def test_rg_06_reset_of_an_account_with_a_second_factor_asks_for_it(
    service: RunningService, account_browser: AccountBrowser, other: HttpBrowser
) -> None:
    secret, _ = await account_browser.set_up_totp(service)
    await service.clock.advance(60)
    await other.get("/forgot")
    await new_messages(service)
    await other.post("/forgot", login="anna@studio.example")
    await other.get(await link_in_new_message(service))
    await other.post("/reset", password=NEW_PASSWORD)
    page = await other.follow()
    assert (page.url.path, is_signed_in(other)) == ("/sign-in/factor", False)
    await other.post("/sign-in/factor", otp=totp_code(secret, service))
    assert is_signed_in(other)


async def test_rg_06_reset_in_another_browser_does_not_lead_to_the_game_of_who_asked(
    service: RunningService, browser_client: HttpBrowser, other: HttpBrowser, anna: User
) -> None:
    """A stranger starts a game and asks to reset the password of its victim."""
    game = await register_game(service)
    await other.get(f"/?gsid={game.gsid}")
    page = await other.follow()
    (path,) = re.findall(r'href="(/forgot\?[^"]+)"', page.text)
    await other.get(path.replace("&amp;", "&"))
    await other.post("/forgot", login=anna.login or "")
    await browser_client.get(await link_in_new_message(service))
    done = await browser_client.post("/reset", password=NEW_PASSWORD)
    assert done.headers["location"] == "/account"
