"""Changing the password on the account page."""

from functools import partial

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.accounts.users import update_user
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser, totp_code
from tests.support.mailbox import link_in_new_message, new_messages
from tests.support.service import RunningService

NEW = "a quite different phrase"
CHANGE = {"current": PASSWORD, "password": NEW}


async def read_user(service: RunningService, user: User) -> User:
    return await service.services.storage.accounts.user(user.user_id)


async def forget_password(service: RunningService, user: User) -> None:
    """Turn it into an account without a password."""
    without = replace(await read_user(service, user), password_hash=None)
    await service.services.storage.runner.write(partial(update_user, without))


async def test_the_new_password_works_and_the_old_one_does_not(
    account_browser: AccountBrowser, browser_client: HttpBrowser
) -> None:
    notice = await account_browser.submit_and_read_notice("/account/password", **CHANGE)
    assert notice == "Password changed. All other devices are signed out."
    assert (await browser_client.sign_in(LOGIN)).status_code == 403
    assert (await browser_client.sign_in(LOGIN, NEW)).status_code == 303


async def test_this_session_stays_and_every_other_one_ends_with_every_token(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    elsewhere = AccountBrowser(service, agent="curl/8")
    await elsewhere.sign_in_and_open_account()
    before = (await read_user(service, anna)).rev
    await account_browser.submit_and_read_notice("/account/password", **CHANGE)
    assert await account_browser.is_signed_in()
    assert not await elsewhere.is_signed_in()
    assert (await read_user(service, anna)).rev > before
    await elsewhere.client.aclose()


async def test_password_change_is_emailed_to_the_owner_and_recorded(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    await account_browser.submit_and_read_notice("/account/password", **CHANGE)
    (message,) = await new_messages(service)
    assert (message.to, message.subject) == (LOGIN, "Your password was changed")
    assert "127.0.0.1" in message.text
    assert "Firefox, Linux" in message.text
    (entry,) = await service.services.storage.audit.newest_records(1, anna.user_id, "password.changed")
    assert (entry.actor, entry.details) == (anna.user_id, {"first": False})
    assert NEW not in repr(entry)


async def test_password_change_needs_no_recent_confirmation(
    service: RunningService, account_browser: AccountBrowser
) -> None:
    await service.clock.advance(3_600)
    assert "changed" in await account_browser.submit_and_read_notice("/account/password", **CHANGE)


async def test_a_wrong_present_password_is_refused_and_counted_with_those_at_the_sign_in(
    service: RunningService, account_browser: AccountBrowser, anna: User
) -> None:
    for _ in range(10):
        response = await account_browser.submit("/account/password", **{**CHANGE, "current": "not this one"})
        assert response.status_code == 403
        assert account_browser.problem_in(response) == "Your current password is wrong."
    closed = await account_browser.submit("/account/password", **CHANGE)
    assert closed.status_code == 429
    assert int(closed.headers["retry-after"]) > 0
    assert (await read_user(service, anna)).password_hash == anna.password_hash
    await account_browser.get("/sign-in")
    assert (await account_browser.post("/sign-in", login=LOGIN, password=PASSWORD)).status_code == 429


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"password": "short"}, "at least 10 characters"),
        ({"password": "gatehouse-anna"}, "too easy to guess"),
    ],
)
async def test_a_password_that_breaks_the_rules_is_refused(
    service: RunningService, account_browser: AccountBrowser, anna: User, fields: dict[str, str], words: str
) -> None:
    response = await account_browser.submit("/account/password", **{**CHANGE, **fields})
    assert response.status_code == 400
    assert words in account_browser.problem_in(response)
    assert NEW not in response.text
    user = await read_user(service, anna)
    assert (user.password_hash, user.rev) == (anna.password_hash, anna.rev)


async def test_links_mailed_before_are_dead_afterwards(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser
) -> None:
    await browser_client.get("/forgot")
    await browser_client.post("/forgot", login=LOGIN)
    link = await link_in_new_message(service)
    assert (await browser_client.get(link)).status_code == 200
    await account_browser.submit_and_read_notice("/account/password", **CHANGE)
    assert (await browser_client.get(link)).status_code == 403


async def test_password_change_fails_after_sign_out_everywhere_during_hashing(
    service: RunningService, account_browser: AccountBrowser, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashing = service.services.accounts.passwords.hash

    async def hash_slowly(password: str) -> str:
        await service.services.accounts.sessions.sign_out_everywhere(anna.user_id, AuditOrigin(actor="test"))
        return await hashing(password)

    monkeypatch.setattr(service.services.accounts.passwords, "hash", hash_slowly)
    response = await account_browser.submit("/account/password", **CHANGE)
    assert response.status_code == 409
    assert (await read_user(service, anna)).password_hash == anna.password_hash


async def test_an_account_without_a_password_gets_one_after_a_fresh_proof(
    service: RunningService, account_browser: AccountBrowser, browser_client: HttpBrowser, anna: User
) -> None:
    secret, _ = await account_browser.set_up_totp(service)
    await forget_password(service, anna)
    page = await account_browser.get("/account")
    assert "This account has no password." in page.text
    await service.clock.advance(601)
    response = await account_browser.submit("/account/password", password=NEW)
    assert response.headers["location"] == "/confirm?next=%2Faccount%2Fpassword"
    back = await account_browser.confirm(otp=totp_code(secret, service))
    assert back.headers["location"] == "/account#password"
    assert "changed" in await account_browser.submit_and_read_notice("/account/password", password=NEW)
    assert (await browser_client.sign_in(LOGIN, NEW)).status_code == 303
    (entry,) = await service.services.storage.audit.newest_records(1, anna.user_id, "password.changed")
    assert entry.details == {"first": True}
