"""Accounts with a user name and a password but without an email address: all that needs a fresh sign-in works."""

import html
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import IMPORTED_ACCOUNT, JOINED_KEY, User
from gatehouse.audit.model import AuditOrigin
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser, totp_code
from tests.support.builders import a_record, a_user
from tests.support.guests import Device, confirm_upgrade, register_upgrade
from tests.support.mailbox import link_in_new_message
from tests.support.service import RunningService, running_service
from tests.support.studio import a_studio, create_administrator

NAME = "kim.berg"
NEW = "a quite different phrase"
ORIGIN = AuditOrigin(actor="test")


async def create_kim(service: RunningService, *, administrator: bool = False, **fields: object) -> User:
    kim = replace(a_user(), login=None, username=NAME, nick="Kim", **fields)  # type: ignore[arg-type]
    kim = replace(kim, password_hash=await service.services.accounts.passwords.hash(PASSWORD))
    await service.services.storage.accounts.create_user(
        kim, a_record(subject=kim.user_id), administrator=administrator
    )
    return kim


@pytest.fixture
async def kim(service: RunningService) -> User:
    return await create_kim(service)


@pytest.fixture
async def browser(service: RunningService) -> AsyncIterator[AccountBrowser]:
    someone = AccountBrowser(service)
    yield someone
    await someone.client.aclose()


async def test_account_without_email_confirms_with_its_password(
    service: RunningService, kim: User, browser: AccountBrowser
) -> None:
    del kim
    await browser.sign_in_and_open_account(NAME)
    await service.clock.advance(601)
    response = await browser.get("/account/delete")
    assert response.headers["location"].startswith("/confirm")
    page = await browser.follow()
    assert f'<p class="person">{NAME}</p>' in page.text
    assert (await browser.submit("/confirm", password="wrong")).status_code == 403
    back = await browser.submit("/confirm", password=PASSWORD)
    assert (back.status_code, back.headers["location"]) == (303, "/account/delete")


async def test_account_without_email_confirms_where_user_names_are_turned_off(
    service: RunningService, kim: User, browser: AccountBrowser
) -> None:
    """It may be signed in by a passkey; whether people may type user names at the sign-in does not matter here."""
    del kim
    await browser.sign_in_and_open_account(NAME)
    await service.services.settings_editor.save({"accounts.username_sign_in": False}, ORIGIN)
    await service.clock.advance(601)
    await browser.get("/account/delete")
    assert (await browser.confirm(password=PASSWORD)).headers["location"] == "/account/delete"


async def test_account_without_email_and_user_name_confirms_with_its_password(
    service: RunningService, browser: AccountBrowser
) -> None:
    """It has lost its address to the owner of that address; its sessions stay."""
    anna = await service.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
    )
    await browser.sign_in_and_open_account()
    accounts = service.services.storage.accounts
    stored = await accounts.user(anna.user_id)
    await service.services.storage.profile.change_account(
        replace(stored, login=None), [a_record()], [], ends_links=True
    )
    await service.clock.advance(601)
    await browser.get("/account/delete")
    assert (await browser.confirm(password=PASSWORD)).headers["location"] == "/account/delete"


async def test_wrong_passwords_of_a_confirmation_count_with_those_at_the_sign_in(
    service: RunningService, kim: User, browser_client: HttpBrowser, browser: AccountBrowser
) -> None:
    del kim
    await browser.sign_in_and_open_account(NAME)
    await service.clock.advance(601)
    await browser.get("/account/delete")
    await browser.follow()
    for _ in range(10):
        assert (await browser.submit("/confirm", password="wrong")).status_code == 403
    assert (await browser.submit("/confirm", password=PASSWORD)).status_code == 429
    assert (await browser.sign_in(NAME)).status_code == 429, "they were counted for this browser"
    assert (await browser_client.sign_in(NAME)).status_code == 303, "and not for others, whose owner it may be"


async def test_one_account_without_email_recognizes_no_browser_of_another(
    service: RunningService, kim: User, browser_client: HttpBrowser, browser: AccountBrowser
) -> None:
    """The device cookie is of one account; it used to be of all that have no address."""
    other = await create_other(service)
    await browser.sign_in_and_open_account(NAME)
    for _ in range(11):
        await browser_client.sign_in(other, "wrong")
    assert (await browser_client.sign_in(other)).status_code == 429
    assert (await browser.sign_in(other)).status_code == 429
    for _ in range(11):
        await browser_client.sign_in(NAME, "wrong")
    assert (await browser.sign_in(NAME)).status_code == 303, f"the browser of {kim.user_id} is known"


async def create_other(service: RunningService) -> str:
    other = replace(
        a_user(), login=None, username="lee.park", password_hash=await service.services.accounts.passwords.hash(NEW)
    )
    await service.services.storage.accounts.create_user(other, a_record(subject=other.user_id))
    return "lee.park"


async def test_account_without_email_changes_its_password(
    kim: User, browser_client: HttpBrowser, browser: AccountBrowser
) -> None:
    del kim
    await browser.sign_in_and_open_account(NAME)
    fields = {"password": NEW}
    wrong = await browser.submit("/account/password", current="wrong", **fields)
    assert browser.problem_in(wrong) == "Your current password is wrong."
    assert "changed" in await browser.submit_and_read_notice("/account/password", current=PASSWORD, **fields)
    assert (await browser_client.sign_in(NAME)).status_code == 403
    assert (await browser_client.sign_in(NAME, NEW)).status_code == 303


@pytest.mark.both_databases
async def test_account_without_email_adds_an_address(
    service: RunningService, kim: User, browser_client: HttpBrowser, browser: AccountBrowser
) -> None:
    await browser.sign_in_and_open_account(NAME)
    await service.clock.advance(601)
    await browser.get("/account")
    await browser.submit("/account/email", login=LOGIN)
    assert (await browser.confirm(password=PASSWORD)).headers["location"] == "/account#email"
    await browser.submit_and_read_notice("/account/email", login=LOGIN)
    await browser.get(await link_in_new_message(service))
    assert (await browser.post("/verify-email")).status_code == 200
    stored = await service.services.storage.accounts.user(kim.user_id)
    assert (stored.login, stored.email_verified) == (LOGIN, True)
    assert (await browser_client.sign_in(LOGIN)).status_code == 303


async def test_account_without_email_deletes_itself(
    service: RunningService, kim: User, browser: AccountBrowser
) -> None:
    await browser.sign_in_and_open_account(NAME)
    await service.clock.advance(601)
    await browser.get("/account/delete")
    await browser.confirm(password=PASSWORD)
    page = await browser.follow()
    assert "type <strong><bdi>Kim</bdi></strong>" in html.unescape(page.text)
    assert '<input name="login" type="text"' in page.text, "a browser takes no nick in a field for addresses"
    assert (await browser.submit("/account/delete", login="kim.berg")).status_code == 400
    assert "deleted" in (await browser.submit("/account/delete", login="Kim")).text
    assert not await browser.is_signed_in()
    assert await service.services.storage.accounts.user_by_username(NAME) is None
    assert kim.username == NAME


async def test_imported_account_without_email_sets_up_a_second_factor(
    service: RunningService, browser: AccountBrowser
) -> None:
    """No one has to prove an address that is not there."""
    kim = await create_kim(service, meta={JOINED_KEY: IMPORTED_ACCOUNT})
    await browser.sign_in_and_open_account(NAME)
    await service.clock.advance(601)
    await browser.get("/account/totp")
    await browser.confirm(password=PASSWORD)
    secret, codes = await browser.set_up_totp(service)
    assert codes
    await service.clock.advance(601)
    await browser.get("/account/delete")
    page = await browser.follow()
    assert 'name="password"' in page.text
    assert 'name="otp"' in page.text
    assert (await browser.submit("/confirm", otp=totp_code(secret, service))).status_code == 403
    back = await browser.submit("/confirm", password=PASSWORD, otp=totp_code(secret, service))
    assert back.headers["location"] == "/account/delete"
    assert (await service.services.storage.accounts.user(kim.user_id)).has_second_factor


async def test_administrator_without_email_confirms_in_the_console(
    service: RunningService, browser: AccountBrowser
) -> None:
    await create_kim(service, administrator=True)
    await browser.sign_in_and_open_account(NAME)
    await service.clock.advance(601)
    response = await browser.get("/console/people/import")
    assert response.headers["location"].startswith("/confirm")
    back = await browser.confirm(password=PASSWORD)
    assert back.headers["location"] == "/console/people/import"
    assert (await browser.follow()).status_code == 200


@pytest.fixture
async def guest_service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    environment = {"GATEHOUSE__GUESTS__ENABLED": "true"}
    async with running_service(installed_url, tmp_path, environment=environment) as running:
        yield running


async def test_guest_is_merged_into_an_account_without_email(guest_service: RunningService) -> None:
    kim = await create_kim(guest_service)
    device = Device()
    guest = await device.log_in(guest_service)
    await guest_service.services.storage.accounts.set_labels(
        guest["user_id"], a_record(), purchases=frozenset({"skin"})
    )
    browser = HttpBrowser(guest_service)
    page = await confirm_upgrade(browser, await register_upgrade(guest_service, device), NAME)
    assert page.url.path == "/game/done", page.text
    assert (await guest_service.services.storage.accounts.user(kim.user_id)).purchases == {"skin"}
    await browser.client.aclose()


async def test_administrator_saves_an_account_without_email(service: RunningService, kim: User) -> None:
    studio = await a_studio(service)
    admin = await create_administrator(studio)
    ask = {"action": "save", "data": {"user_id": kim.user_id, "nick": "Kimmy", "tags": ["vip"]}}
    saved = (await studio.expect_ok("user", ask, admin.headers))["data"]
    assert (saved["nick"], saved["tags"]) == ("Kimmy", ["vip"])
    ask = {"action": "save", "data": {"user_id": kim.user_id, "email_verified": True}}
    await studio.expect_ok("user", ask, admin.headers)
    stored = await service.services.storage.accounts.user(kim.user_id)
    assert (stored.login, stored.email_verified) == (None, False)
    refused = {"action": "save", "data": {"user_id": kim.user_id, "login": "kim"}}
    assert (await studio.post("user", refused, admin.headers)).status_code == 400
